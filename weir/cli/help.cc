#include "weir/cli/help.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "weir/cli/text_width.h"

namespace weir::cli {
namespace {

// Help fits every terminal, and is the same on all of them.
constexpr std::size_t kColumns = 80;

// Breaks a text that starts at the column `indent` into lines that start there.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string lines;
  std::size_t at = indent;  // the column behind the last word
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const std::size_t width = text_width(word);
    if (at > indent && at + 1 + width > kColumns) {
      lines += "\n" + std::string(indent, ' ');
      at = indent;
    } else if (at > indent) {
      lines += ' ';
      ++at;
    }
    lines += word;
    at += width;
  }
  return lines;
}

// "  left      right", the right column starting at the same place in every line.
std::string two_columns(const std::vector<std::pair<std::string, std::string>>& lines) {
  std::size_t widest = 0;
  for (const auto& [left, right] : lines) widest = std::max(widest, left.size());
  std::string text;
  for (const auto& [left, right] : lines) {
    text += "  " + left + std::string(widest - left.size() + 2, ' ') + wrapped(right, widest + 4) + "\n";
  }
  return text;
}

std::string indented(std::string_view lines) {
  std::string text;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    text += "  " + std::string(lines.substr(0, end)) + "\n";
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return text;
}

}  // namespace

std::vector<std::string> paragraphs_of(std::string_view details) {
  std::vector<std::string> paragraphs;
  bool open = false;  // the last paragraph goes on
  while (!details.empty()) {
    const std::string_view line = details.substr(0, details.find('\n'));
    details.remove_prefix(std::min(line.size() + 1, details.size()));
    const bool verbatim = line.starts_with(' ');
    if (open && !verbatim && !line.empty()) {
      paragraphs.back().append(" ").append(line);
    } else {
      paragraphs.emplace_back(line);
    }
    open = !verbatim && !line.empty();
  }
  return paragraphs;
}

std::string spelled(const Option& option) {
  if (option.positional() || option.flag()) return std::string(option.name);
  return std::string(option.name) + " " + std::string(option.value);
}

std::string usage_of(const Command& command) {
  std::string text = "weir " + std::string(command.name);
  for (const Option& option : command.options) {
    const bool nameless = option.positional() || option.bare;
    const std::string word = nameless ? std::string(option.value) : spelled(option);
    const std::string item = (option.required ? word : "[" + word + "]") + (option.repeated ? "..." : "");
    // "Usage: " stands before the first line.
    const std::size_t line = text.size() - (text.rfind('\n') + 1) + (text.find('\n') == std::string::npos ? 7 : 0);
    text += (line + 1 + item.size() > kColumns ? "\n         " : " ") + item;
  }
  return text;
}

std::string explain_option(const Option& option) {
  std::string text(option.help);
  if (option.choices.empty()) return text;
  text += ": ";
  for (const std::string_view choice : option.choices) {
    if (choice != option.choices.front()) text += choice == option.choices.back() ? " or " : ", ";
    text += choice;
  }
  return option.otherwise().empty() ? text : text + " (default " + std::string(option.otherwise()) + ")";
}

const std::vector<std::pair<std::string_view, std::string_view>>& exit_statuses() {
  static const std::vector<std::pair<std::string_view, std::string_view>> all{
      {"0", "success"},
      {"1", "failure"},
      {"2", "invalid command line or configuration"},
      {"3", "denied, or not found"},
  };
  return all;
}

namespace {

std::string list(std::string_view group) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const Command& command : commands()) {
    if (command.name.starts_with(group)) lines.emplace_back(command.name, command.summary);
  }
  return two_columns(lines);
}

std::string exit_line() {
  std::string text;
  for (const auto& [status, meaning] : exit_statuses()) {
    text += text.empty() ? " " : ", ";
    text.append(status).append(" ").append(meaning);
  }
  return text;
}

}  // namespace

std::string general_help() {
  return "weir decides whether a request may pass.\n\n"
         "Usage: weir COMMAND [OPTIONS]\n\n"
         "Commands:\n" +
         list("") +
         "\n"
         "Options:\n"
         "  -h, --help     this text; after a command, its options and examples\n"
         "      --version  the version\n\n"
         "`weir ratelimit COMMAND` is the same as `weir COMMAND`.\n\n" +
         wrapped("Exit status:" + exit_line() + ".", 0) + "\n";
}

std::string help_of(const Command& command) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const Option& option : command.options) {
    const std::string letter = option.letter.empty() ? "" : std::string(option.letter) + ", ";
    lines.emplace_back(letter + spelled(option), explain_option(option));
  }
  lines.emplace_back("-h, --help", "this text");
  std::string details;
  for (const std::string& paragraph : paragraphs_of(command.details)) {
    details += (paragraph.starts_with(' ') ? paragraph : wrapped(paragraph, 0)) + "\n";
  }
  return "Usage: " + usage_of(command) + "\n\n" + details + "\nOptions:\n" + two_columns(lines) + "\nExamples:\n" +
         indented(command.examples);
}

std::string help_of_group(std::string_view group) {
  return "Usage: weir " + std::string(group) + " COMMAND [OPTIONS]\n\nCommands:\n" + list(std::string(group) + " ") +
         "\nweir " + std::string(group) + " COMMAND --help says more.\n";
}

}  // namespace weir::cli
