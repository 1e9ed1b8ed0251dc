#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "weir/admin/admin_shared_test.h"
#include "weir/admin/assets.h"
#include "weir/admin/calls.h"

namespace weir::dashboard_test {
namespace {

using admin::Asset;
using admin::Reply;
using admin::Request;

Reply get(const Request& request) {
  SharedForTest shared;
  return std::get<Reply>(admin::dashboard_asset(shared.shared, request));
}

TEST(Dashboard, ServesEveryFileOfThePage) {
  for (const Asset& asset : admin::assets()) {
    Request request;
    request.parts[0] = asset.name;
    const Reply reply = get(request);
    EXPECT_EQ(reply.status, 200) << asset.name;
    EXPECT_EQ(reply.content, asset.plain);
    EXPECT_NE(reply.fields.find("Content-Security-Policy: default-src 'none'"), std::string::npos);
    EXPECT_EQ(reply.fields.find("Content-Encoding"), std::string::npos);
  }
}

}  // namespace
}  // namespace weir::dashboard_test
