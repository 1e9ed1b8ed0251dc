-- Asks Weir about a request, through HAProxy's own HTTP client (2.5 and later), and leaves what it said in variables:
--   txn.weir_status       200, 429 (limited), 403 (deny list); 0 when Weir could not be asked
--   txn.weir_limit, txn.weir_remaining, txn.weir_reset, txn.weir_retry_after   its headers, where it sent them
-- Used as: http-request lua.weir http://127.0.0.1:8080

local headers_of = {
  weir_limit = "x-ratelimit-limit",
  weir_remaining = "x-ratelimit-remaining",
  weir_reset = "x-ratelimit-reset",
  weir_retry_after = "retry-after",
}

-- What limits may be keyed by goes along; bodies and everything about the connection stay here.
local left_out = {
  ["connection"] = true, ["content-length"] = true, ["transfer-encoding"] = true, ["expect"] = true,
  ["upgrade"] = true, ["te"] = true, ["keep-alive"] = true,
  -- These are ours to say: what the client sent under these names is not believed.
  ["x-forwarded-for"] = true, ["x-real-ip"] = true, ["x-forwarded-method"] = true, ["x-forwarded-uri"] = true,
  ["x-forwarded-host"] = true, ["x-original-method"] = true, ["x-original-uri"] = true,
}

local function ask(txn, server)
  local headers = {}
  for name, values in pairs(txn.http:req_get_headers()) do
    if not left_out[name] then
      local list = {}
      for _, value in pairs(values) do list[#list + 1] = value end
      headers[name] = list
    end
  end
  headers["x-forwarded-method"] = { txn.f:method() }
  headers["x-forwarded-uri"] = { txn.f:pathq() }
  headers["x-forwarded-for"] = { txn.f:src() }
  headers["x-forwarded-host"] = { txn.f:req_hdr("host") or "" }
  local answer = core.httpclient():get{ url = server .. "/v1/authorize", headers = headers, timeout = 1000 }
  txn:set_var("txn.weir_status", answer.status or 0)
  for variable, name in pairs(headers_of) do
    local values = answer.headers and answer.headers[name]
    if values then txn:set_var("txn." .. variable, values[0]) end
  end
end

core.register_action("weir", { "http-req" }, ask, 1)
