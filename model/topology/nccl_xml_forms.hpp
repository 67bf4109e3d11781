#pragma once
// The form of every attribute that NCCL 2.30.7 and AMD's RCCL write in a system XML. A value that is not of
// its form is refused even where nothing is computed from it: a number with trailing text is a typing error.
// Invariant: after check_forms, numbers are within the stated range, hexadecimal texts are hexadecimal, and a
// busid has at most 16 digits. Unknown attributes and elements are not judged.
// Source: docs/topology-files.md.

#include "model/topology/nccl_xml_document.hpp"

namespace isthmus {

/// Raises the first attribute of this element that is not of its form.
void check_forms(const NcclXmlDocument& document, pugi::xml_node element);

}  // namespace isthmus
