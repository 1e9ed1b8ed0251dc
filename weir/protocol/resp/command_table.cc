#include "weir/protocol/resp/command_table.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "weir/base/ascii.h"

namespace weir {
namespace {

using resp::ReplyWriter;

// Arity as in Redis: the exact number of words, or the negative minimum.
int arity(const CommandRow& row) {
  return row.words_min == row.words_max ? row.words_min : -row.words_min;
}

// Name, arity, flags, first key, last key, step, then empty categories, tips, key specifications and subcommands.
void write_row(const CommandRow& row, ReplyWriter& writer) {
  writer.array(10);
  writer.bulk(row.name);
  writer.integer(arity(row));
  writer.set(row.before_auth ? 3 : 2);
  writer.simple(row.write ? "write" : "readonly");
  writer.simple("fast");
  if (row.before_auth) writer.simple("no_auth");
  writer.integer(row.first_key);
  writer.integer(row.last_key);
  writer.integer(row.first_key == 0 ? 0 : 1);
  writer.set(0);
  writer.array(0);
  writer.array(0);
  writer.array(0);
}

void write_rows_named(std::span<const std::string_view> names, ReplyWriter& writer) {
  writer.array(names.size());
  for (const std::string_view name : names) {
    if (const CommandRow* row = find_command(name)) {
      write_row(*row, writer);
    } else {
      writer.null();
    }
  }
}

void write_every_row(ReplyWriter& writer) {
  writer.array(kCommandTable.size());
  for (const CommandRow& row : kCommandTable) write_row(row, writer);
}

// Writes the words of a usage in the format of redis-cli's hints.
void write_arguments(std::string_view usage, ReplyWriter& writer) {
  writer.array(usage.empty() ? 0 : 1 + static_cast<std::size_t>(std::count(usage.begin(), usage.end(), ' ')));
  while (!usage.empty()) {
    std::string_view word = usage.substr(0, usage.find(' '));
    usage.remove_prefix(std::min(word.size() + 1, usage.size()));
    const bool optional = word.starts_with('[');
    if (optional) word = word.substr(1, word.size() - 2);
    const bool multiple = word.ends_with("...");
    if (multiple) word.remove_suffix(3);
    writer.map(3);
    writer.bulk("name");
    writer.bulk(word);
    writer.bulk("type");
    writer.bulk("string");
    writer.bulk("flags");
    writer.set((optional ? 1u : 0u) + (multiple ? 1u : 0u));
    if (optional) writer.simple("optional");
    if (multiple) writer.simple("multiple");
  }
}

void write_doc(const CommandRow& row, ReplyWriter& writer) {
  writer.bulk(row.name);
  writer.map(4);
  writer.bulk("summary");
  writer.bulk(row.summary);
  writer.bulk("since");
  writer.bulk("0.1.0");
  writer.bulk("group");
  writer.bulk(row.group);
  writer.bulk("arguments");
  write_arguments(row.usage, writer);
}

// Unknown names are omitted, as in Redis.
void write_docs(std::span<const std::string_view> names, ReplyWriter& writer) {
  if (names.empty()) {
    writer.map(kCommandTable.size());
    for (const CommandRow& row : kCommandTable) write_doc(row, writer);
    return;
  }
  std::size_t known = 0;
  for (const std::string_view name : names) known += find_command(name) != nullptr ? 1 : 0;
  writer.map(known);
  for (const std::string_view name : names) {
    if (const CommandRow* row = find_command(name)) write_doc(*row, writer);
  }
}

}  // namespace

bool equal_in_any_case(std::string_view text, std::string_view lower) noexcept {
  if (text.size() != lower.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char byte = to_lower(text[i]);
    if (byte != lower[i]) return false;
  }
  return true;
}

const CommandRow* find_command(std::string_view name) noexcept {
  for (const CommandRow& row : kCommandTable) {
    if (equal_in_any_case(name, row.name)) return &row;
  }
  return nullptr;
}

void unknown_subcommand(std::string_view subcommand, std::string_view upper_command, ReplyWriter& writer) {
  writer.error("ERR unknown subcommand '" + std::string(subcommand.substr(0, 128)) + "'. Try " +
               std::string(upper_command) + " HELP.");
}

void answer_command(std::span<const std::string_view> arguments, ReplyWriter& writer) {
  if (arguments.size() == 1) return write_every_row(writer);
  const std::string_view subcommand = arguments[1];
  const std::span<const std::string_view> names = arguments.subspan(2);
  if (equal_in_any_case(subcommand, "docs")) return write_docs(names, writer);
  if (equal_in_any_case(subcommand, "info")) {
    return names.empty() ? write_every_row(writer) : write_rows_named(names, writer);
  }
  if (equal_in_any_case(subcommand, "count")) return writer.integer(static_cast<std::int64_t>(kCommandTable.size()));
  if (equal_in_any_case(subcommand, "list")) {
    writer.array(kCommandTable.size());
    for (const CommandRow& row : kCommandTable) writer.bulk(row.name);
    return;
  }
  if (equal_in_any_case(subcommand, "help")) {
    writer.array(2);
    writer.simple("COMMAND [(no subcommand) | COUNT | LIST | HELP]");
    writer.simple("COMMAND (INFO | DOCS) [name ...]");
    return;
  }
  unknown_subcommand(subcommand, "COMMAND", writer);
}

}  // namespace weir
