// The OpenAPI documents by the word of somebody else's validator.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { pathToFileURL } from 'node:url';

// Modules do not look at NODE_PATH.
const installed = path.join(process.env.NODE_PATH, '@seriousme', 'openapi-schema-validator', 'index.js');
const { Validator } = await import(pathToFileURL(installed));

const folder = path.join(process.env.WEIR_SOURCE, 'docs', 'openapi');
const names = fs.readdirSync(folder).filter((name) => name.endsWith('.yaml'));
assert.ok(names.length >= 2);
for (const name of names) {
  test(`${name} is OpenAPI 3.1`, async () => {
    const validator = new Validator();
    const result = await validator.validate(fs.readFileSync(path.join(folder, name), 'utf8'));
    assert.deepEqual(result.errors ?? [], []);
    assert.equal(result.valid, true);
    assert.equal(validator.version, '3.1');
  });
}

test('the validator refuses what is not', async () => {
  const result = await new Validator().validate('openapi: 3.1.0\ninfo: {title: a}\npaths: {}\n');
  assert.equal(result.valid, false);
});
