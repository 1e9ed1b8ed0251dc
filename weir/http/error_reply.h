// Responses to requests that the HTTP layer refuses, and the form of all error responses:
// {"error":"<code>","message":"<sentence>"}.
#pragma once

#include <string>
#include <string_view>

#include "weir/http/exchange.h"
#include "weir/wire/http.h"

namespace weir::http {

inline constexpr std::string_view kJson = "application/json";

// Returns the error code for a status: "too_large".
std::string_view code_of(int status) noexcept;

// Appends the content of an error response, without a newline.
void write_error(std::string_view code, std::string_view message, std::string& out);
// Appends the content of a response to a problem, with a newline, so that a terminal's prompt starts on its own line.
void write_problem(const HttpProblem& problem, std::string& out);

// Answers with the problem.
void respond_problem(Exchange& exchange, const HttpProblem& problem);

inline constexpr HttpProblem kContentTooLarge{413, "the content is larger than the server accepts"};
inline constexpr HttpProblem kHeadTooSlow{408, "the head of the request did not come in time"};
inline constexpr HttpProblem kContentTooSlow{408, "the content did not come in time"};
inline constexpr HttpProblem kCutOff{400, "the connection ended in the middle of the request"};
inline constexpr HttpProblem kTooMuchContent{503, "too many large requests are incomplete on this connection"};
inline constexpr HttpProblem kTooManyExchanges{503, "the server has too many open requests"};

}  // namespace weir::http
