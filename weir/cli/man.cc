#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/cli/commands.h"
#include "weir/cli/help.h"
#include "weir/cli/version.h"

namespace weir::cli {
namespace {

// Text as roff reads it: a backslash and a leading dot or quote have meanings, a plain '-' may become a hyphen, and
// the one character beyond ASCII that help texts have needs a name.
std::string escaped(std::string_view text) {
  std::string roff;
  bool line_start = true;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (line_start && (c == '.' || c == '\'')) roff += "\\&";
    if (c == '\\') {
      roff += "\\e";
    } else if (c == '-') {
      roff += "\\-";
    } else if (text.substr(at).starts_with("…")) {
      roff += "\\[u2026]";
      at += std::string_view("…").size() - 1;
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
  if (!option.positional() && !option.flag()) name += " \\fI" + escaped(option.value) + "\\fR";
  return text + name + "\n" + escaped(explain_option(option)) + "\n";
}

// Filled by roff, but for examples, which are indented.
std::string details_paragraph(const std::string& paragraph) {
  if (paragraph.empty()) return ".PP\n";
  if (paragraph.starts_with(' ')) return ".nf\n" + escaped(paragraph) + "\n.fi\n";
  return escaped(paragraph) + "\n";
}

std::string command_section(const Command& command) {
  std::string text = ".SS \"" + escaped(joined(usage_of(command))) + "\"\n";
  for (const std::string& paragraph : paragraphs_of(command.details)) text += details_paragraph(paragraph);
  for (const Option& option : command.options) text += option_paragraph(option);
  if (!command.examples.empty()) text += ".PP\nExamples:\n.PP\n.nf\n.RS\n" + escaped(command.examples) + "\n.RE\n.fi\n";
  return text;
}

std::string man_page() {
  // Not justified: a long word would leave a line that cannot be.
  std::string text = ".TH WEIR 1 \"\" \"weir " + escaped(version_number()) + "\" \"User Commands\"\n.ad l\n.nh\n";
  text += section("NAME") + "weir \\- exact rate limiter: server, edge proxy and tools\n";
  text += section("SYNOPSIS") + ".B weir\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n";
  text += section("DESCRIPTION") + "weir decides whether a request may pass.\n.PP\n" +
          escaped("`weir ratelimit COMMAND` is the same as `weir COMMAND`.") + "\n";
  text += section("COMMANDS");
  for (const Command& command : commands()) text += command_section(command);
  text += section("EXIT STATUS");
  for (const auto& [status, meaning] : exit_statuses())
    text += ".TP\n.B " + std::string(status) + "\n" + escaped(meaning) + "\n";
  text += section("ENVIRONMENT");
  const std::pair<std::string_view, std::string_view> variables[] = {
      {"WEIR_SERVER", "Where check and throttle find the server, instead of http://127.0.0.1:8080."},
      {"WEIR_ADMIN", "Where the other commands find the admin API, instead of http://127.0.0.1:9090."},
      {"WEIR_TOKEN", "The token to show, if neither \\-\\-token nor \\-\\-token\\-file is given."},
      {"NO_COLOR", "If it is set, there are no colors on terminals either."},
  };
  for (const auto& [name, meaning] : variables)
    text += ".TP\n.B " + std::string(name) + "\n" + std::string(meaning) + "\n";
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
