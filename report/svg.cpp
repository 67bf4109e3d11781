#include "report/svg.hpp"

#include <fmt/format.h>

namespace isthmus::report {
namespace {

std::string xml_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '&': safe += "&amp;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;  // which XML does not allow
    }
  }
  return safe;
}

std::string_view anchor_text(SvgAnchor anchor) {
  switch (anchor) {
    case SvgAnchor::middle: return "middle";
    case SvgAnchor::end: return "end";
    case SvgAnchor::start: break;
  }
  return "start";
}

}  // namespace

SvgDrawing::SvgDrawing(double width, double height, std::string_view title, std::string_view description) {
  body_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\" aria-labelledby=\"title description\" "
      "font-family=\"Helvetica, Arial, sans-serif\">\n<title id=\"title\">{2}</title>\n"
      "<desc id=\"description\">{3}</desc>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, height, xml_text(title), xml_text(description));
}

void SvgDrawing::line(SvgPoint from, SvgPoint to, std::string_view stroke, double width,
                      std::string_view dashes) {
  const std::string pattern = dashes.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dashes);
  body_ += fmt::format(
      "<line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\" stroke=\"{}\" "
      "stroke-width=\"{:.2f}\"{}/>\n",
      from.x, from.y, to.x, to.y, stroke, width, pattern);
}

void SvgDrawing::bar(SvgPoint corner, double width, double height, std::string_view fill) {
  body_ += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n",
                       corner.x, corner.y, width, height, fill);
}

void SvgDrawing::dot(SvgPoint centre, double radius, std::string_view stroke, std::string_view fill,
                     std::string_view name) {
  body_ += fmt::format(
      "<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:.2f}\" stroke=\"{}\" fill=\"{}\"><title>{}</title>"
      "</circle>\n",
      centre.x, centre.y, radius, stroke, fill, xml_text(name));
}

void SvgDrawing::text(SvgPoint at, std::string_view words, double size, SvgAnchor anchor) {
  body_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" font-size=\"{:.2f}\" text-anchor=\"{}\">{}</text>\n",
                       at.x, at.y, size, anchor_text(anchor), xml_text(words));
}

void SvgDrawing::upright(SvgPoint at, std::string_view words, double size) {
  body_ += fmt::format(
      "<text transform=\"translate({:.2f} {:.2f}) rotate(-90)\" font-size=\"{:.2f}\" "
      "text-anchor=\"middle\">{}</text>\n",
      at.x, at.y, size, xml_text(words));
}

std::string SvgDrawing::finish() const { return body_ + "</svg>\n"; }

}  // namespace isthmus::report
