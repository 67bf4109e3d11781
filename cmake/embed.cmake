# cmake -DOUTPUT=FILE.cpp -DPAGE=FOLDER -DLIBRARY=FILE -P embed.cmake
# Writes the source that defines page_assets() (report/page.hpp) with the content of report/page/ and of D3; LIBRARY may
# be empty.
set(HTML "${PAGE}/page.html")
set(STYLE "${PAGE}/page.css")
set(SCRIPT "${PAGE}/text.js" "${PAGE}/charts.js" "${PAGE}/views.js" "${PAGE}/page.js")
set(definitions)
foreach(name IN ITEMS HTML STYLE SCRIPT LIBRARY)
  string(TOLOWER "${name}" variable)
  set(bytes)
  foreach(file IN LISTS ${name})
    file(READ "${file}" content HEX)
    string(REGEX REPLACE "(..)" "0x\\1," content "${content}")
    string(APPEND bytes "${content}")
  endforeach()
  string(APPEND definitions "constexpr unsigned char ${variable}[] = {${bytes}0};\n")
endforeach()
file(WRITE "${OUTPUT}" "#include \"report/page.hpp\"

namespace isthmus::report {
namespace {
${definitions}
template <std::size_t Size>
std::string_view text(const unsigned char (&bytes)[Size]) {
  return {reinterpret_cast<const char*>(bytes), Size - 1};
}
}  // namespace

PageAssets page_assets() { return {text(html), text(style), text(script), text(library)}; }

}  // namespace isthmus::report
")
