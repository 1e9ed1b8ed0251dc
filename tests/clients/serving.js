// Starts `weir serve` for a test of a client and ends it with the test. WEIR names the binary; ctest sets it.
'use strict';

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const readline = require('node:readline');

const LIMITS = `
threads: 2
limits:
  per-ip: {key: ip, burst: 3, count: 3, period: 1h}
  orders: {burst: 1000, count: 1, period: 1h}
`;

class Server {
  // `password`: of the RESP listener. `config`: the rest of the configuration, instead of a few limits; `more` follows
  // it. `files`: name to text, beside it. `speak`: its listeners. `tls`: what the listener of a protocol has besides.
  static async start(
    t,
    { password, config = LIMITS, more = '', files = {}, speak = ['http', 'resp', 'admin'], tls = {} } = {},
  ) {
    const server = new Server();
    server.password = password;
    server.tls = tls;
    server.text = config + more;
    server.directory = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-'));
    server.ports = Object.fromEntries(speak.map((word) => [word, 0]));
    t.after(async () => {
      await server.end('SIGTERM');
      fs.rmSync(server.directory, { recursive: true });
    });
    for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(server.directory, name), text);
    await server.begin();
    return server;
  }

  async begin() {
    const listen = Object.entries(this.ports).map(([speak, port]) => {
      const secret = speak === 'resp' && this.password ? `, password: ${this.password}` : '';
      return `  - {address: "127.0.0.1:${port}", speak: ${speak}${secret}${this.tls[speak] ?? ''}}\n`;
    });
    const config = path.join(this.directory, 'weir.yaml');
    fs.writeFileSync(config, 'listen:\n' + listen.join('') + this.text);
    this.process = spawn(process.env.WEIR, ['serve', '--config', config], { stdio: ['ignore', 'inherit', 'pipe'] });
    this.ended = new Promise((resolve) => this.process.once('exit', resolve));
    const lines = readline.createInterface({ input: this.process.stderr });
    const ready = new Promise((resolve) => {
      lines.on('line', (line) => {
        if (line.includes('ready:')) resolve(line);
      });
    });
    const line = await Promise.race([ready, this.ended]);
    if (typeof line !== 'string') throw new Error('the server ended before it was ready');
    for (const [, speak, port] of line.matchAll(/(\w+) on 127\.0\.0\.1:(\d+)/g)) this.ports[speak] = Number(port);
  }

  async end(signal) {
    this.process.kill(signal);
    await this.ended;
  }

  // Dies without a word and comes back on the same ports.
  async restart() {
    await this.end('SIGKILL');
    await this.begin();
  }

  url(target, speak = 'http') {
    return `http://127.0.0.1:${this.ports[speak]}${target}`;
  }
}

// What a user would see on the console: warnings of Node and whatever the client prints itself.
function complaints(t) {
  const seen = [];
  const warned = (warning) => seen.push(String(warning));
  process.on('warning', warned);
  t.after(() => process.removeListener('warning', warned));
  for (const level of ['warn', 'error']) {
    const original = console[level];
    console[level] = (...words) => seen.push(words.join(' '));
    t.after(() => {
      console[level] = original;
    });
  }
  return seen;
}

module.exports = { Server, complaints };
