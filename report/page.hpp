#pragma once
// The page of --report: one HTML file that needs nothing else and asks for nothing (its policy on content
// forbids every request). It holds the JSON that the command prints, and report/page/page.js draws from that
// JSON and from nothing else; without scripts it shows the table of the terminal.
// Charts are D3's (its licence stands in the page), taken from the distribution's package when the program is
// built. Invariant: the page's data are, byte by byte, the documents given, but that "<" stands as \u003c.

#include <string>
#include <string_view>

#include "report/comparison.hpp"

namespace isthmus::report {

/// Files that the build puts into the program (cmake/embed.cmake). `library` is empty where the build found
/// no D3.
struct PageAssets {
  std::string_view html, style, script, library;
};
PageAssets page_assets();

/// simulate's JSON with the key `report`. `data` is of report/page_data.hpp.
std::string with_page_data(const std::string& comparison_json, const std::string& data);

struct PageTexts {
  std::string title;        // the scenario
  std::string table;        // what the terminal shows
  std::string data;         // with_page_data
  std::string explanation;  // explain's JSON, or empty
};

/// Raises SystemError where the program was built without D3.
std::string page_document(const PageTexts& texts, const PageAssets& assets);

}  // namespace isthmus::report
