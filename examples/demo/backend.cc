// A web site for script/server to protect: one page and one JSON resource, on 127.0.0.1:8001. It knows nothing of rate
// limits; Weir in front of it answers 429.
//
//   demo_backend [PORT]
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

const std::string kPage = R"(<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Weir demo</title>
<meta name="viewport" content="width=device-width">
<style>
 body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 40rem; padding: 0 1rem }
 button { font: inherit; padding: .4rem 1rem }
 #bar { display: flex; flex-wrap: wrap; gap: 3px; margin: 1rem 0; min-height: 16px }
 #bar i { width: 14px; height: 14px; border-radius: 3px; background: #2e7d32 }
 #bar i.no { background: #c62828 }
 pre { background: #8881; padding: 1rem; overflow: auto }
</style>
<h1>This site is rate limited</h1>
<p>The page comes from a small web server that knows no limits. Weir forwards requests to it, at most 20 at once and
100 a second from one address; what is more gets <code>429</code>.</p>
<p><button>Send 60 requests</button></p>
<div id="bar" aria-live="polite"></div>
<pre id="last">No request yet.</pre>
<script>
const bar = document.querySelector("#bar"), last = document.querySelector("#last");
document.querySelector("button").onclick = async () => {
  bar.textContent = "";
  await Promise.all(Array.from({length: 60}, async (_, i) => {
    const answer = await fetch("/api?" + i);
    const text = await answer.text();
    const mark = document.createElement("i");
    mark.className = answer.ok ? "yes" : "no";
    mark.title = answer.status;
    bar.append(mark);
    const names = ["x-ratelimit-limit", "x-ratelimit-remaining", "retry-after"];
    const lines = names.filter(n => answer.headers.has(n)).map(n => n + ": " + answer.headers.get(n));
    last.textContent = [answer.status + " " + answer.statusText, ...lines, "", text].join("\n");
  }));
};
</script>
</html>
)";

bool send_all(int socket, const std::string& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t wrote = send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (wrote <= 0) return false;
    sent += static_cast<std::size_t>(wrote);
  }
  return true;
}

// Answers requests without a body until the client closes.
void serve(int socket) {
  std::string bytes;
  char buffer[4096];
  for (;;) {
    std::size_t end = 0;
    while ((end = bytes.find("\r\n\r\n")) == std::string::npos && bytes.size() < 65536) {
      const ssize_t got = recv(socket, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      bytes.append(buffer, static_cast<std::size_t>(got));
    }
    if (end == std::string::npos) break;
    const bool api = bytes.rfind("GET /api", 0) == 0;
    const bool page = bytes.rfind("GET / ", 0) == 0 || bytes.rfind("GET /? ", 0) == 0;
    const std::string body = api ? "{\"hello\":\"from the backend\"}\n" : page ? kPage : "not found\n";
    const std::string head = std::string("HTTP/1.1 ") + (api || page ? "200 OK" : "404 Not Found") +
                             "\r\nContent-Type: " +
                             (api    ? "application/json"
                              : page ? "text/html; charset=utf-8"
                                     : "text/plain") +
                             "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    bytes.erase(0, end + 4);
    if (!send_all(socket, head + body)) break;
  }
  close(socket);
}

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // ends with the server that script/server starts
  const int port = argc > 1 ? std::atoi(argv[1]) : 8001;
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<unsigned short>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || listen(listener, 128) != 0) {
    std::perror("demo_backend: cannot listen");
    return 1;
  }
  for (;;) {
    const int client = accept(listener, nullptr, nullptr);
    if (client >= 0) std::thread(serve, client).detach();
  }
}
