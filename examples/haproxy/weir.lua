-- Asks Weir about a request with HAProxy's HTTP client (2.5 and later), and stores the answer in variables:
--   txn.weir_status       200, 429 (limited), 403 (deny list); 0 if Weir is unreachable
--   txn.weir_limit, txn.weir_remaining, txn.weir_reset, txn.weir_retry_after   its headers, if it sent them
-- Usage: http-request lua.weir http://127.0.0.1:8080

local headers_of = {
  weir_limit = "x-ratelimit-limit",
  weir_remaining = "x-ratelimit-remaining",
  weir_reset = "x-ratelimit-reset",
  weir_retry_after = "retry-after",
}

-- Limits can use request headers as keys, so they are sent along, except headers about the body and the connection.
local left_out = {
  ["connection"] = true, ["content-length"] = true, ["transfer-encoding"] = true, ["expect"] = true,
  ["upgrade"] = true, ["te"] = true, ["keep-alive"] = true,
  -- This action sets these headers itself. Values from the client are not trusted.
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
