// The admin API: calls with the token, and the stream of numbers. The token stays in this tab's sessionStorage and is
// sent in a header only, so that it never appears in a URL.
const kTokenKey = 'weir-token';

export const token = {
  get: () => sessionStorage.getItem(kTokenKey) ?? '',
  set: (value) => (value ? sessionStorage.setItem(kTokenKey, value) : sessionStorage.removeItem(kTokenKey)),
};

// What the server refused, in its own words.
export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

function headers(more = {}) {
  return token.get() ? { ...more, Authorization: `Bearer ${token.get()}` } : more;
}

async function failure(response) {
  let code = '';
  let message = `${response.status} ${response.statusText}`;
  try {
    const content = await response.json();
    code = content.error ?? code;
    message = content.message ?? message;
  } catch {
    // Not JSON: a proxy in between, or a connection that ended early. The status says enough.
  }
  if (response.status === 401 || response.status === 403) document.dispatchEvent(new Event('token-wanted'));
  return new ApiError(response.status, code, message);
}

export async function call(method, path, content) {
  const options = { method, headers: headers(), cache: 'no-store' };
  if (content !== undefined) {
    options.headers = headers({ 'Content-Type': 'application/json' });
    options.body = JSON.stringify(content);
  } else if (method !== 'GET') {
    options.headers = headers({ 'Content-Type': 'application/json' });
    options.body = '{}';
  }
  const response = await fetch(path, options);
  if (!response.ok) throw await failure(response);
  return response.json();
}

export const clientPath = (limit, id) => `/ratelimit/clients/${encodeURIComponent(limit)}/${encodeURIComponent(id)}`;

// Reads server-sent events with fetch(), because EventSource cannot send a header. Calls `receive` with each event's
// data; returns when the server ends the stream, throws when it cannot be read.
export async function stream(path, receive, signal) {
  const response = await fetch(path, { headers: headers(), cache: 'no-store', signal });
  if (!response.ok) throw await failure(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    let end;
    while ((end = text.indexOf('\n\n')) >= 0) {
      const lines = text
        .slice(0, end)
        .split('\n')
        .filter((line) => line.startsWith('data: '));
      text = text.slice(end + 2);
      if (lines.length > 0) receive(JSON.parse(lines.map((line) => line.slice(6)).join('\n')));
    }
  }
}
