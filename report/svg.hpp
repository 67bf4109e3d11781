#pragma once
// A static drawing for papers: lines, bars, points and words as SVG 1.1, black on white, in user units of one
// point. Nothing here knows what is drawn (report/plot.hpp does).
// Invariant: equal calls give equal bytes; numbers have two decimals; all text is escaped.

#include <string>
#include <string_view>

namespace isthmus::report {

struct SvgPoint {
  double x = 0, y = 0;
};

enum class SvgAnchor { start, middle, end };

class SvgDrawing {
 public:
  /// `title` and `description` are what readers of the page hear.
  SvgDrawing(double width, double height, std::string_view title, std::string_view description);

  void line(SvgPoint from, SvgPoint to, std::string_view stroke, double width = 1,
            std::string_view dashes = "");
  void bar(SvgPoint corner, double width, double height, std::string_view fill);
  /// `name` appears when it is pointed at.
  void dot(SvgPoint centre, double radius, std::string_view stroke, std::string_view fill,
           std::string_view name);
  void text(SvgPoint at, std::string_view words, double size = 11, SvgAnchor anchor = SvgAnchor::start);
  /// Reads upwards.
  void upright(SvgPoint at, std::string_view words, double size = 11);

  /// The document, with a newline at its end.
  std::string finish() const;

 private:
  std::string body_;
};

}  // namespace isthmus::report
