#include "weir/identify/path.h"

#include <gtest/gtest.h>

namespace weir::path_test {
namespace {

std::string normal(std::string_view target) {
  std::string out = "left over";
  normalize_path(target, out);
  return out;
}

TEST(Path, DecodesEscapesOfUnreservedCharactersOnly) {
  EXPECT_EQ(normal("/sign%69n"), "/signin");
  EXPECT_EQ(normal("/%7euser/%2D%5F%2E%7E"), "/~user/-_.~");
  EXPECT_EQ(normal("/a%2fb%3a"), "/a%2Fb%3A") << "an escaped slash is not a separator";
  EXPECT_EQ(normal("/100%"), "/100%25");
  EXPECT_EQ(normal("/%zz%4"), "/%25zz%254");
  EXPECT_EQ(normal("/%%361"), "/%2561");
  EXPECT_EQ(normal("/%2561"), "/%2561") << "decoded once";
}

TEST(Path, EscapesBytesThatAPathMayNotContain) {
  EXPECT_EQ(normal("/\xc3\xbc"), "/%C3%BC");
  EXPECT_EQ(normal("/%c3%bc"), "/%C3%BC") << "one path, however it is written";
  EXPECT_EQ(normal("/x y/\"<>\\^`{|}\x7f"), "/x%20y/%22%3C%3E%5C%5E%60%7B%7C%7D%7F");
  EXPECT_EQ(normal("/!$&'()*+,=:@"), "/!$&'()*+,=:@");
}

TEST(Path, RemovesDotSegmentsAndDoubledSlashes) {
  EXPECT_EQ(normal("/a/./b"), "/a/b");
  EXPECT_EQ(normal("/a/../signin"), "/signin");
  EXPECT_EQ(normal("/a/%2e%2E/signin"), "/signin");
  EXPECT_EQ(normal("//signin"), "/signin");
  EXPECT_EQ(normal("/a//../b"), "/b") << "slashes are merged first, like in servers";
  EXPECT_EQ(normal("/../../x"), "/x");
  EXPECT_EQ(normal("/a/.."), "/");
  EXPECT_EQ(normal("/a/b/.."), "/a");
  EXPECT_EQ(normal("/a/."), "/a");
  EXPECT_EQ(normal("/a/..."), "/a/...");
}

TEST(Path, IgnoresATrailingSlash) {
  EXPECT_EQ(normal("/a/"), "/a");
  EXPECT_EQ(normal("/a///"), "/a");
  EXPECT_EQ(normal("/a"), "/a");
  EXPECT_EQ(normal("/"), "/");
}

TEST(Path, DropsParameters) {
  EXPECT_EQ(normal("/signin;x"), "/signin");
  EXPECT_EQ(normal("/signin;jsessionid=1/"), "/signin");
  EXPECT_EQ(normal("/a;b/c;d/e"), "/a/c/e");
  EXPECT_EQ(normal("/a/..;x/signin"), "/signin") << "Tomcat takes it for a dot segment";
  EXPECT_EQ(normal("/;x/signin"), "/signin");
  EXPECT_EQ(normal("/signin%3Bx"), "/signin%3Bx") << "escaped, it is a part of the name";
}

TEST(Path, KnowsNullCharacters) {
  EXPECT_TRUE(has_null("/a%00"));
  EXPECT_TRUE(has_null(std::string_view("/a\0b", 4)));
  EXPECT_FALSE(has_null("/a%0"));
  EXPECT_FALSE(has_null("/a?b=%00"));
}

TEST(Path, KnowsFieldsThatDiffer) {
  EXPECT_FALSE(query_field_differs("k=a", "k"));
  EXPECT_FALSE(query_field_differs("k=a&k=%61", "k"));
  EXPECT_TRUE(query_field_differs("k=a&x=1&%6B=b", "k"));
  EXPECT_TRUE(query_field_differs("k=&k=b", "k"));
  EXPECT_FALSE(query_field_differs("", "k"));
}

TEST(Path, DropsTheRestOfTheTarget) {
  EXPECT_EQ(normal("/a?b=/c"), "/a");
  EXPECT_EQ(normal("/a#b?c"), "/a");
  EXPECT_EQ(normal("http://example.com/a/b?c"), "/a/b");
  EXPECT_EQ(normal("https://example.com"), "/");
  EXPECT_EQ(normal("/http://x/a"), "/http:/x/a");
  EXPECT_EQ(normal(""), "/");
  EXPECT_EQ(normal("?x"), "/");
  EXPECT_EQ(normal("a/b"), "/a/b");
}

TEST(Path, CountsSegmentsFromOne) {
  EXPECT_EQ(path_segment("/api/v1/users", 1), "api");
  EXPECT_EQ(path_segment("/api/v1/users", 3), "users");
  EXPECT_EQ(path_segment("/api/v1/users", 4), "");
  EXPECT_EQ(path_segment("/api/", 2), "");
  EXPECT_EQ(path_segment("/", 1), "");
  EXPECT_EQ(path_segment("/", 64), "");
}

TEST(Path, FindsAFieldOfTheQueryAndDecodesIt) {
  const auto field = [](std::string_view target, std::string_view name) {
    std::string out = "+";
    return find_query_field(query_of(target), name, out) ? out : "none";
  };
  EXPECT_EQ(field("/a?x=1&email=a%40b.c&email=z", "email"), "+a@b.c");
  EXPECT_EQ(field("/a?e%6Dail=a+b", "email"), "+a b");
  EXPECT_EQ(field("/a?email", "email"), "+");
  EXPECT_EQ(field("/a?=1&&x=", "y"), "none");
  EXPECT_EQ(field("/a?b=1#b=2", "b"), "+1");
  EXPECT_EQ(field("/a#?b=1", "b"), "none");
}

}  // namespace
}  // namespace weir::path_test
