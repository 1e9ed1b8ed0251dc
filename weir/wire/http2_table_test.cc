// What a server answers to frames written byte by byte: one row for each rule of RFC 9113 and RFC 7541. Where nghttp2
// is stricter or more patient than the clause, the row says so. Each row is sent whole and one byte at a time.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "weir/wire/http2_frames_test.h"

namespace weir::http2_table_test {
namespace {

using namespace http2_frames;

struct Row {
  std::string rule;    // clause and sentence
  std::string bytes;   // behind opening()
  std::string answer;  // events, then frames
};

const std::string kHead1 = "head 1 :method=GET :scheme=https :authority=h :path=/";
const std::string kHead3 = "head 3 :method=GET :scheme=https :authority=h :path=/";
const std::string kRst1 = " | RST_STREAM 1 PROTOCOL_ERROR";
const std::string kMalformed = kRst1;
const std::string kProtocol = " | GOAWAY PROTOCOL_ERROR";
const std::string kSize = " | GOAWAY FRAME_SIZE_ERROR";
const std::string kCompression = " | GOAWAY COMPRESSION_ERROR";

// An open stream 1: its body is still to come.
std::string open_stream(const Fields& more = {}) {
  return headers(1, request(more, "POST"), end_headers);
}
const std::string kOpen = "head 1 :method=POST :scheme=https :authority=h :path=/";

std::string answer(std::string_view bytes, std::size_t piece) {
  End server;
  server.fill();
  server.take_out();
  server.receive(bytes, piece);
  const std::string record = server.take_record();
  return record + " | " + server.take_frames();
}

void check(const std::vector<Row>& rows, std::string_view before) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const std::string bytes = std::string(before) + row.bytes;
    const std::string wanted = row.answer.find('|') == row.answer.npos ? row.answer + " | " : row.answer;
    EXPECT_EQ(answer(bytes, bounds::http2_receive_bytes_max), wanted);
    EXPECT_EQ(answer(bytes, 1), wanted) << "one byte at a time";
  }
}

TEST(Http2Table, RejectsBadOpenings) {
  const std::string preface(kPreface);
  check(
      {
          {"§3.4 the preface must be exact", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r", kProtocol},
          {"§3.4 an HTTP/1 request is not a preface", "GET / HTTP/1.1\r\nhost: h\r\n\r\n", kProtocol},
          {"§3.4 the first frame must be SETTINGS", preface + ping(), kProtocol},
          {"§3.4 an acknowledgment is not the first SETTINGS", preface + settings_ack(), kProtocol},
          {"§3.4 requests may follow the preface at once", preface + settings() + headers(1, request()),
           kHead1 + ", end 1"},
      },
      "");
}

TEST(Http2Table, ReadsFramesAsSection4Says) {
  const std::string get = block(request());
  check(
      {
          {"§4.1 unknown types are ignored", frame(0xFA, 0xFF, 7, "?") + headers(1, request()), kHead1 + ", end 1"},
          {"§4.1 the reserved bit is ignored", frame(type_headers, 5, 0x80000001, get), kHead1 + ", end 1"},
          {"§4.1 undefined flags are ignored", open_stream() + data(1, "x", 0xC0 | end_stream),
           kOpen + ", data 1 x, end 1"},
          {"§4.2 a payload of 16 KiB", open_stream() + data(1, std::string(16384, 'x')),
           kOpen + ", data 1 " + std::string(16384, 'x')},
          {"§4.2 and one byte more", open_stream() + data(1, std::string(16385, 'x')), kOpen + kSize},
          {"§6.7 PING has 8 bytes", frame(type_ping, 0, 0, "1234567"), kSize},
          {"§6.4 RST_STREAM has 4 bytes", open_stream() + frame(type_rst_stream, 0, 1, "123"), kOpen + kSize},
          {"§6.9 WINDOW_UPDATE has 4 bytes", frame(type_window_update, 0, 0, "12345"), kSize},
          {"§6.5 SETTINGS has multiples of 6 bytes", frame(type_settings, 0, 0, "12345"), kSize},
          {"§6.5 an acknowledgment is empty", frame(type_settings, ack, 0, "123456"), kSize},
          {"§6.8 GOAWAY has at least 8 bytes", frame(type_goaway, 0, 0, "1234567"), kSize},
          {"§4.3 a block that cannot be decoded", frame(type_headers, 5, 1, "\xFF\xFF"), kCompression},
          {"§4.3 no DATA inside a header block", headers(1, request(), 1) + data(1, "x"), kProtocol},
          {"§4.3 no HEADERS inside a header block", headers(1, request(), 1) + headers(3, request()), kProtocol},
          {"§5.5 no unknown frame inside a header block", headers(1, request(), 1) + frame(0xFA, 0, 1, ""), kProtocol},
          {"§6.10 no CONTINUATION of another stream", headers(1, request(), 1) + continuation(3, "", 4), kProtocol},
          {"§6.10 no CONTINUATION of nothing", continuation(1, get, 4), kProtocol},
          {"§6.10 no CONTINUATION on stream 0", headers(1, request(), 1) + continuation(0, "", 4), kProtocol},
          {"§6.10 a block in pieces",
           frame(type_headers, 1, 1, get.substr(0, 3)) + continuation(1, get.substr(3, 9)) + continuation(1, "") +
               continuation(1, get.substr(12), 4),
           kHead1 + ", end 1"},
      },
      opening());
}

TEST(Http2Table, KeepsTheStatesOfSection5) {
  const std::string closed = open_stream() + rst_stream(1, 8);
  const std::string was_closed = kOpen + ", reset 1 CANCEL";
  check(
      {
          {"§5.1 no DATA on an idle stream", data(1, "x"), kProtocol},
          {"§5.1 no RST_STREAM on an idle stream", rst_stream(1, 8), kProtocol},
          {"§5.1 no WINDOW_UPDATE on an idle stream", window_update(1, 1), kProtocol},
          {"§5.1 no DATA behind END_STREAM (nghttp2 ends the connection)", headers(1, request()) + data(1, "x"),
           kHead1 + ", end 1 | GOAWAY STREAM_CLOSED"},
          {"§5.1 no HEADERS behind END_STREAM (nghttp2 ends the connection)",
           headers(1, request()) + headers(1, request()), kHead1 + ", end 1 | GOAWAY STREAM_CLOSED"},
          {"§5.1 WINDOW_UPDATE behind END_STREAM is fine", headers(1, request()) + window_update(1, 1),
           kHead1 + ", end 1"},
          {"§5.1 RST_STREAM behind END_STREAM is fine", headers(1, request()) + rst_stream(1, 8),
           kHead1 + ", end 1, reset 1 CANCEL"},
          {"§5.1 DATA for a closed stream is ignored (it may have been under way)", closed + data(1, "x"), was_closed},
          {"§5.1 WINDOW_UPDATE for a closed stream is ignored", closed + window_update(1, 1), was_closed},
          {"§5.1 RST_STREAM for a closed stream is ignored", closed + rst_stream(1, 8), was_closed},
          {"§5.1.1 clients use odd streams", headers(2, request()), kProtocol},
          {"§5.1.1 streams may be skipped", headers(3, request()), kHead3 + ", end 3"},
          {"§5.1.1 skipped streams are closed (nghttp2 ignores them)", headers(3, request()) + headers(1, request()),
           kHead3 + ", end 3"},
          {"§5.3.2 PRIORITY is ignored", frame(type_priority, 0, 1, std::string(5, '\0')) + headers(1, request()),
           kHead1 + ", end 1"},
          {"§5.3.2 the priority in HEADERS is ignored",
           frame(type_headers, 5 | with_priority, 1, number(0, 4) + "\x10" + block(request())), kHead1 + ", end 1"},
      },
      opening());
}

TEST(Http2Table, ReadsDataAndHeadersAsSection6Says) {
  const std::string get = block(request());
  check(
      {
          {"§6.1 no DATA on stream 0", data(0, "x"), kProtocol},
          {"§6.1 padding", open_stream() + data(1, "\x02hi__", padded | end_stream), kOpen + ", data 1 hi, end 1"},
          {"§6.1 nothing but padding", open_stream() + data(1, "\x02__", padded | end_stream), kOpen + ", end 1"},
          {"§6.1 padding longer than the payload", open_stream() + data(1, "\x03__", padded), kOpen + kProtocol},
          {"§4.2 no room for the length of the padding (nghttp2 takes it for too much padding)",
           open_stream() + data(1, "", padded), kOpen + kProtocol},
          {"§6.2 no HEADERS on stream 0", headers(0, request()), kProtocol},
          {"§6.2 padding", frame(type_headers, 5 | padded, 1, "\x01" + get + "_"), kHead1 + ", end 1"},
          {"§6.2 padding longer than the payload", frame(type_headers, 5 | padded, 1, "\xFF" + get), kProtocol},
          {"§6.4 no RST_STREAM on stream 0", rst_stream(0, 8), kProtocol},
          {"§6.4 a reset", open_stream() + rst_stream(1, 8), kOpen + ", reset 1 CANCEL"},
          {"§7 unknown codes are as good as others", open_stream() + rst_stream(1, 99), kOpen + ", reset 1 99"},
          {"§6.6 clients do not push", open_stream() + frame(type_push_promise, 4, 1, number(2, 4) + get),
           kOpen + kProtocol},
      },
      opening());
}

TEST(Http2Table, ReadsConnectionFramesAsSection6Says) {
  std::vector<std::pair<unsigned, std::uint32_t>> many(bounds::http2_settings_max, {0xFF, 0});
  const std::string most = settings(many);
  many.push_back({0xFF, 0});
  check(
      {
          {"§6.5 no SETTINGS on a stream", frame(type_settings, 0, 1, ""), kProtocol},
          {"§6.5.2 unknown settings are ignored", settings({{0xFA, 7}}), ""},
          {"§6.5.2 ENABLE_PUSH is 0 or 1", settings({{2, 2}}), kProtocol},
          {"§6.5.2 INITIAL_WINDOW_SIZE is below 2^31", settings({{4, 0x80000000}}), " | GOAWAY FLOW_CONTROL_ERROR"},
          {"§6.5.2 MAX_FRAME_SIZE is at least 2^14", settings({{5, 16383}}), kProtocol},
          {"§6.5.2 MAX_FRAME_SIZE is below 2^24", settings({{5, 1u << 24}}), kProtocol},
          {"RFC 9218 §2.1 NO_RFC7540_PRIORITIES is 0 or 1", settings({{9, 2}}), kProtocol},
          {"§10.5 as many settings as we read in one frame", most, ""},
          {"§10.5 and one more", settings(many), " | GOAWAY ENHANCE_YOUR_CALM"},
          {"§6.7 PING is answered", ping(), " | PING ack"},
          {"§6.7 an acknowledgment is not", ping(ack), "pong"},
          {"§6.7 no PING on a stream", frame(type_ping, 0, 1, "12345678"), kProtocol},
          {"§6.8 GOAWAY", goaway(0, 0), "goaway 0 NO_ERROR"},
          {"§6.8 no GOAWAY on a stream", frame(type_goaway, 0, 1, number(0, 8)), kProtocol},
          {"§6.9 a connection's window does not grow by 0", window_update(0, 0), kProtocol},
          {"§6.9 a stream's window does not grow by 0 (nghttp2 ends the connection)",
           open_stream() + window_update(1, 0), kOpen + kProtocol},
          {"§6.9.1 the connection's window is below 2^31", window_update(0, 0x7FFFFFFF),
           " | GOAWAY FLOW_CONTROL_ERROR"},
          {"§6.9.1 a stream's window is below 2^31", open_stream() + window_update(1, 0x7FFFFFFF),
           kOpen + ", reset 1 FLOW_CONTROL_ERROR | RST_STREAM 1 FLOW_CONTROL_ERROR"},
          {"§6.9.2 a new initial window must fit the old streams (nghttp2 resets those only)",
           open_stream() + window_update(1, 0x7FFF0000) + settings({{4, 0x7FFFFFFF}}),
           kOpen + ", reset 1 FLOW_CONTROL_ERROR | RST_STREAM 1 FLOW_CONTROL_ERROR"},
      },
      opening());
}

TEST(Http2Table, RefusesMalformedMessages) {
  const auto with = [](const std::string& name, const std::string& value) {
    return headers(1, request({{name, value}}));
  };
  const auto with_length = [](const std::string& length) { return open_stream({{"content-length", length}}); };
  const auto opened = [](const std::string& length) { return kOpen + " content-length=" + length; };
  check(
      {
          {"§8.1 trailers", open_stream() + data(1, "x") + headers(1, {{"sum", "1"}}),
           kOpen + ", data 1 x, trailers 1 sum=1, end 1"},
          {"§8.1 trailers end the stream", open_stream() + headers(1, {{"sum", "1"}}, end_headers),
           kOpen + ", reset 1 PROTOCOL_ERROR" + kMalformed},
          {"§8.1 no pseudo-fields in trailers", open_stream() + headers(1, {{":path", "/"}}),
           kOpen + ", reset 1 PROTOCOL_ERROR" + kMalformed},
          {"§8.1.1 content as long as it says", with_length("1") + data(1, "x", end_stream),
           opened("1") + ", data 1 x, end 1"},
          {"§8.1.1 content that is too short", with_length("2") + data(1, "x", end_stream),
           opened("2") + ", data 1 x, reset 1 PROTOCOL_ERROR" + kMalformed},
          {"§8.1.1 content that is too long", with_length("1") + data(1, "x") + data(1, "y"),
           opened("1") + ", data 1 x, reset 1 PROTOCOL_ERROR" + kMalformed},
          {"§8.1.1 no content where there should be", with("content-length", "1"), kMalformed},
          {"§8.1.1 a length that is no number", with("content-length", "1,1"), kMalformed},
          {"§8.1.1 two lengths", headers(1, request({{"content-length", "0"}, {"content-length", "0"}})), kMalformed},
          {"§8.2 names are lower case", with("Accept", "*"), kMalformed},
          {"§8.2.1 no empty name", with("", "x"), kMalformed},
          {"§8.2.1 no space in a name", with("a b", "x"), kMalformed},
          {"§8.2.1 no colon in a name", with("a:b", "x"), kMalformed},
          {"§8.2.1 no byte over 127 in a name", with("\xC3\xA9", "x"), kMalformed},
          {"§8.2.1 no LF in a value", with("a", "x\ny: z"), kMalformed},
          {"§8.2.1 no CR in a value", with("a", "x\ry"), kMalformed},
          {"§8.2.1 no NUL in a value", with("a", std::string("x\0y", 3)), kMalformed},
          {"§8.2.1 no space before a value", with("a", " x"), kMalformed},
          {"§8.2.1 no tab behind a value", with("a", "x\t"), kMalformed},
          {"§8.2.1 bytes over 127 in a value", with("a", "\xC3\xA9"), kHead1 + " a=\xC3\xA9, end 1"},
          {"§8.2.2 no Connection", with("connection", "close"), kMalformed},
          {"§8.2.2 no Keep-Alive", with("keep-alive", "1"), kMalformed},
          {"§8.2.2 no Proxy-Connection", with("proxy-connection", "close"), kMalformed},
          {"§8.2.2 no Transfer-Encoding", with("transfer-encoding", "chunked"), kMalformed},
          {"§8.2.2 no Upgrade", with("upgrade", "h2c"), kMalformed},
          {"§8.2.2 TE is trailers", with("te", "trailers"), kHead1 + " te=trailers, end 1"},
          {"§8.2.2 and nothing else", with("te", "gzip"), kMalformed},
          {"§8.2.3 cookies are joined", headers(1, request({{"cookie", "a=1"}, {"x", "y"}, {"cookie", "b=2"}})),
           kHead1 + " cookie=a=1; b=2 x=y, end 1"},
      },
      opening());
}

TEST(Http2Table, RefusesBadPseudoFields) {
  const std::string a = ":authority";
  const auto get = [](const Fields& fields) { return headers(1, fields); };
  const Fields no_method = {{":scheme", "https"}, {a, "h"}, {":path", "/"}};
  const Fields no_scheme = {{":method", "GET"}, {a, "h"}, {":path", "/"}};
  const Fields no_path = {{":method", "GET"}, {":scheme", "https"}, {a, "h"}};
  const Fields no_authority = {{":method", "GET"}, {":scheme", "https"}, {":path", "/"}};
  const auto plus = [](Fields fields, const std::string& name, const std::string& value) {
    fields.push_back({name, value});
    return fields;
  };
  check(
      {
          {"§8.3 pseudo-fields come first", get(plus(plus(no_path, "x", "y"), ":path", "/")), kMalformed},
          {"§8.3 no unknown pseudo-field", get(request({{":x", "y"}})), kMalformed},
          {"§8.3 no response's pseudo-field", get(request({{":status", "200"}})), kMalformed},
          {"§8.3 none twice", get(request({{":path", "/"}})), kMalformed},
          {"§8.3.1 a method", get(no_method), kMalformed},
          {"§8.3.1 a scheme", get(no_scheme), kMalformed},
          {"§8.3.1 a path", get(no_path), kMalformed},
          {"§8.3.1 not an empty one", get(plus(no_path, ":path", "")), kMalformed},
          {"§8.3.1 not a relative one", get(plus(no_path, ":path", "x")), kMalformed},
          {"§8.3.1 * is for OPTIONS", get(plus(no_path, ":path", "*")), kMalformed},
          {"§8.3.1 and only for that", get({{":method", "OPTIONS"}, {":scheme", "https"}, {a, "h"}, {":path", "*"}}),
           "head 1 :method=OPTIONS :scheme=https :authority=h :path=*, end 1"},
          {"§8.3.1 a method is a token", get(plus(no_method, ":method", "G T")), kMalformed},
          {"§8.3.1 an authority or a host", get(no_authority), kMalformed},
          {"§8.3.1 a host alone", get(plus(no_authority, "host", "h")),
           "head 1 :method=GET :scheme=https :path=/ host=h, end 1"},
          {"§8.3.1 host and authority agree", get(request({{"host", "H"}})), kHead1 + " host=H, end 1"},
          {"§8.3.1 host and authority disagree", get(request({{"host", "i"}})), kMalformed},
          {"§8.3.1 two hosts", get(plus(plus(no_authority, "host", "h"), "host", "h")), kMalformed},
          {"§8.5 no tunnels", get({{":method", "CONNECT"}, {a, "h:443"}}), "refused 1 405"},
          {"RFC 8441 §4 nor protocols in them", get(request({{":protocol", "websocket"}}, "CONNECT")), kMalformed},
      },
      opening());
}

TEST(Http2Table, DecodesFieldsAsRfc7541Says) {
  const auto raw = [](const std::string& bytes) { return frame(type_headers, 5, 1, bytes); };
  // :method GET, :scheme https, :path / from the static table, and the authority.
  const std::string get = "\x82\x87\x84" + std::string("\x41\x01h");
  const std::string head = "head 1 :method=GET :scheme=https :path=/ :authority=h";
  const std::string zero(1, '\0');
  check(
      {
          {"§6.1 fields of the static table", raw(get), head + ", end 1"},
          {"§6.1 index 0 is not used", raw(get + "\x80"), kCompression},
          {"§2.3.3 an index beyond both tables", raw(get + "\xFE"), kCompression},
          {"§6.2.1 a field that is added can be named", raw(get + "\x40\x01x\x01y\xBE"), head + " x=y x=y, end 1"},
          {"§6.2.2 a field that is not added cannot", raw(get + zero + "\x01x\x01y\xBF"), kCompression},
          {"§6.2.3 a field that is never added", raw(get + "\x10\x01x\x01y"), head + " x=y, end 1"},
          {"§5.1 a number that goes on forever", raw(get + "\x7F" + std::string(11, '\xFF')), kCompression},
          {"§5.1 a number that is cut off", raw(get + "\x7F\x80"), kCompression},
          {"§5.2 a string that is cut off", raw(get + zero + "\x05x"), kCompression},
          {"§5.2 Huffman", raw(get + zero + "\x01x\x81\x1F"), head + " x=a, end 1"},
          {"§5.2 Huffman padding is ones", raw(get + zero + "\x01x\x81\x18"), kCompression},
          {"§5.2 no more than 7 of them", raw(get + zero + "\x01x\x82\x1F\xFF"), kCompression},
          {"§5.2 no EOS in a string", raw(get + zero + "\x01x\x84\xFF\xFF\xFF\xFF"), kCompression},
          {"§6.3 a smaller table", raw("\x20" + get), head + ", end 1"},
          {"§6.3 not smaller than what is in it is needed", raw("\x20" + get + "\x40\x01x\x01y\xBE"), kCompression},
          {"§6.3 a larger table than we allow", raw(hpack_number(0x20, 5, 4097) + get), kCompression},
          {"§4.2 its size changes first", raw(get + "\x20"), kCompression},
          {"§5.2 a string over 65,536 bytes (nghttp2 decodes none)",
           frame(type_headers, 1, 1, get + zero + "\x01x" + hpack_number(0, 7, 65537)), kCompression},
      },
      opening());
}

}  // namespace
}  // namespace weir::http2_table_test
