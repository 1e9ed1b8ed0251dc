// Asks 200 questions at once over one HTTP/2 connection, then cancels some, with Node's own client.
// node http2_client.js URL [CA FILE]
'use strict';
const fs = require('fs');
const http2 = require('http2');

const [url, ca] = process.argv.slice(2);
const session = http2.connect(url, ca ? {ca: fs.readFileSync(ca), servername: 'localhost'} : {});
session.on('error', (error) => {
  console.error(String(error));
  process.exit(1);
});

function ask(id, cancel) {
  return new Promise((resolve, reject) => {
    const stream =
        session.request({':method': 'POST', ':path': '/v1/check', 'content-type': 'application/json'});
    let status = 0;
    let content = '';
    stream.on('response', (headers) => status = headers[':status']);
    stream.on('data', (piece) => content += piece);
    stream.on('close', () => resolve({status, content, code: stream.rstCode}));
    stream.on('error', (error) => cancel ? resolve({}) : reject(error));
    if (cancel) {
      stream.write('{"limit":');
      stream.close(http2.constants.NGHTTP2_CANCEL);
    } else {
      stream.end(JSON.stringify({limit: 'orders', id}));
    }
  });
}

(async () => {
  const asked = [];
  for (let i = 0; i < 200; ++i) asked.push(ask('node', i % 10 === 9));
  const answers = (await Promise.all(asked)).filter((answer) => answer.status);
  const good = answers.filter((answer) => answer.status === 200 && JSON.parse(answer.content).allowed);
  console.log(JSON.stringify({answers: answers.length, good: good.length, alpn: session.alpnProtocol}));
  session.close();
})().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
