#include <string>
#include <string_view>

#include "weir/cli/commands.h"
#include "weir/cli/help.h"
#include "weir/cli/version.h"

namespace weir::cli {
namespace {

// Text as roff reads it: a backslash and a leading dot or quote have meanings, and a plain '-' may become a hyphen.
std::string escaped(std::string_view text) {
  std::string roff;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) roff += "\\&";
    if (c == '\\') {
      roff += "\\e";
    } else if (c == '-') {
      roff += "\\-";
    } else {
      roff += c;
    }
    line_start = c == '\n';
  }
  return roff;
}

// A usage that was broken into lines, as one.
std::string joined(const std::string& usage) {
  std::string text;
  for (const char c : usage) {
    const bool space = c == '\n' || c == ' ';
    if (!space || !text.ends_with(' ')) text += space ? ' ' : c;
  }
  return text;
}

std::string section(std::string_view title) {
  return ".SH " + std::string(title) + "\n";
}

std::string option_paragraph(const Option& option) {
  std::string text = ".TP\n";
  std::string name;
  if (!option.letter.empty()) name += "\\fB" + escaped(option.letter) + "\\fR, ";
  name += "\\fB" + escaped(option.name) + "\\fR";
  if (!option.positional()) name += " \\fI" + escaped(option.value) + "\\fR";
  return text + name + "\n" + escaped(explain_option(option)) + "\n";
}

std::string command_section(const Command& command) {
  std::string text = ".SS \"" + escaped(joined(usage_of(command))) + "\"\n.nf\n" + escaped(command.details) + "\n.fi\n";
  for (const Option& option : command.options) text += option_paragraph(option);
  if (!command.examples.empty()) text += ".PP\nExamples:\n.PP\n.nf\n.RS\n" + escaped(command.examples) + "\n.RE\n.fi\n";
  return text;
}

std::string man_page() {
  // Not justified: a long word would leave a line that cannot be.
  std::string text = ".TH WEIR 1 \"\" \"weir " + escaped(version_number()) + "\" \"User Commands\"\n.ad l\n.nh\n";
  text += section("NAME") + "weir \\- exact rate limiter: server, edge proxy and tools\n";
  text += section("SYNOPSIS") + ".B weir\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n";
  text += section("DESCRIPTION") + "weir decides whether a request may pass.\n";
  text += section("COMMANDS");
  for (const Command& command : commands()) text += command_section(command);
  text += section("EXIT STATUS");
  for (const auto& [status, meaning] : exit_statuses())
    text += ".TP\n.B " + std::string(status) + "\n" + escaped(meaning) + "\n";
  text += section("FILES") + ".TP\n.I /etc/weir/weir.yaml\nThe configuration of the service.\n";
  return text;
}

}  // namespace

Command man() {
  return {"man",
          "print the manual page",
          "Prints the manual page, made from the same table as this help.",
          {},
          "# Reads it now\n"
          "weir man | man -l -",
          [](const Arguments&, Console& console) {
            console.out.write(man_page());
            return kOk;
          }};
}

}  // namespace weir::cli
