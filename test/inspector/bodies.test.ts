// How bodies are shown.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as zlib from 'node:zlib'
import type { Body } from '../../src/inspector/api.ts'
import { describeBody } from '../../src/inspector/display/body-view.ts'
import { RecordedBody } from '../../src/inspector/store/recorded-body.ts'

function show(
  content: Buffer | string,
  headers: Record<string, string> = {},
  isComplete = true,
): Promise<Body> {
  const body = new RecordedBody()
  body.add(Buffer.from(content as string))
  body.isComplete = isComplete
  return describeBody({ httpVersion: '1.1', headers: Object.entries(headers).flat(), body, trailers: [] })
}

const MiB = 1024 * 1024

test('gzip, deflate, br and zstd are decoded, also several and those of a body that is cut', async () => {
  const text = 'The quick brown fox. '.repeat(1_000)
  const encoders = {
    gzip: zlib.gzipSync,
    deflate: zlib.deflateSync,
    br: zlib.brotliCompressSync,
    ...(zlib.zstdCompressSync && { zstd: zlib.zstdCompressSync }),
  }
  for (const [encoding, encode] of Object.entries(encoders)) {
    const encoded = encode(Buffer.from(text))
    const whole = await show(encoded, { 'Content-Encoding': encoding })
    assert.deepEqual(whole.decoded, [encoding])
    assert.deepEqual(whole.view, { type: 'text', format: 'text', text })
  }
  const twice = zlib.brotliCompressSync(zlib.gzipSync(text))
  assert.deepEqual((await show(twice, { 'content-encoding': 'gzip, br' })).view, {
    type: 'text',
    format: 'text',
    text,
  })
  const cut = await show(zlib.gzipSync(text).subarray(0, -20), { 'content-encoding': 'gzip' }, false)
  assert.ok(
    cut.cut && cut.view.type === 'text' && text.startsWith(cut.view.text) && cut.view.text.length > 100,
  )
})

test('a small body that is a large one compressed takes bounded memory', async () => {
  const bomb = zlib.gzipSync(zlib.gzipSync(Buffer.alloc(200 * MiB)))
  const before = process.memoryUsage().rss
  const { viewCut, view } = await show(bomb, { 'content-encoding': 'gzip, gzip' })
  assert.ok(viewCut)
  assert.ok(view.type === 'hex' && view.text.length < 2 * MiB)
  assert.ok(process.memoryUsage().rss - before < 100 * MiB)
})

test('what cannot be decoded is shown as it is, with the reason', async () => {
  const invalid = await show('not compressed', { 'content-encoding': 'gzip' })
  assert.deepEqual([invalid.decoded, invalid.decodeProblem], [[], 'The body is not valid gzip.'])
  assert.deepEqual(invalid.view, { type: 'text', format: 'text', text: 'not compressed' })
  assert.match(
    (await show('x', { 'content-encoding': 'compress' })).decodeProblem ?? '',
    /"compress" is not supported/,
  )
  assert.match((await show('x', { 'content-encoding': 'br, br, br, br' })).decodeProblem ?? '', /too many/)
})

test('HTML and SVG are text, images are data, and other bytes are hexadecimal', async () => {
  const html = '<script>alert(1)</script>'
  assert.deepEqual((await show(html, { 'content-type': 'text/html' })).view, {
    type: 'text',
    format: 'text',
    text: html,
  })
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'
  assert.equal((await show(svg, { 'content-type': 'image/svg+xml' })).view.type, 'text')
  const png = Buffer.from('89504e470d0a1a0a00', 'hex')
  assert.deepEqual((await show(png, { 'content-type': 'text/html' })).view, {
    type: 'image',
    mediaType: 'image/png',
    base64: png.toString('base64'),
  })
  const { view } = await show(Buffer.from([0, 0x41, 0xff]))
  assert.deepEqual(view.type === 'hex' && view.text.split(/ {2,}/), ['00000000', '00 41 ff', '.A.'])
  assert.deepEqual((await show('')).view, { type: 'empty' })
})

test('JSON is indented without changing its tokens, and not beyond a level', async () => {
  const json = { 'content-type': 'application/problem+json; charset=utf-8' }
  assert.deepEqual(
    (await show('{"a":1.0e3,"a":"\\u0041,{\\"}","b":[],"c":{},"d":[1,{"e":null}]}', json)).view,
    {
      type: 'text',
      format: 'json',
      text:
        '{\n  "a": 1.0e3,\n  "a": "\\u0041,{\\"}",\n  "b": [],\n  "c": {},\n  "d": [\n    1,\n    {\n' +
        '      "e": null\n    }\n  ]\n}',
    },
  )
  assert.deepEqual((await show('{"a":', json)).view, { type: 'text', format: 'text', text: '{"a":' })
  const deep = `${'['.repeat(5_000)}${']'.repeat(5_000)}`
  const { view } = await show(deep, json)
  assert.ok(view.type === 'text' && view.text.length < deep.length * 100)
  const deepest = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
  assert.deepEqual((await show(deepest, json)).view, { type: 'text', format: 'text', text: deepest })
  const long = JSON.stringify(Array.from({ length: 300_000 }, () => 1))
  assert.deepEqual((await show(long, json)).view, { type: 'text', format: 'text', text: long })
})

test('text has the charset that its type says', async () => {
  const latin1 = Buffer.from('caf\xe9', 'latin1')
  assert.deepEqual((await show(latin1, { 'content-type': 'text/plain; charset=ISO-8859-1' })).view, {
    type: 'text',
    format: 'text',
    text: 'café',
  })
  assert.equal((await show(latin1, { 'content-type': 'text/plain' })).view.type, 'hex')
  assert.equal((await show(latin1, { 'content-type': 'text/plain; charset=nothing' })).view.type, 'hex')
})

test('a small request that is large JSON or a large form compressed is shown as text', async () => {
  const deepJson = `${'['.repeat(40)}${'1,'.repeat(2_000_000)}1${']'.repeat(40)}`
  const cases = {
    'application/json': [deepJson, `[${'1,'.repeat(150_000)}1]`],
    'application/x-www-form-urlencoded': ['a&'.repeat(1_500_000), 'a&'.repeat(5_000), 'a'.repeat(300_000)],
  }
  for (const [type, texts] of Object.entries(cases))
    for (const text of texts) {
      const sent = zlib.gzipSync(text)
      assert.ok(sent.length < 8 * 1024)
      const { view } = await show(sent, { 'content-type': type, 'content-encoding': 'gzip' })
      assert.deepEqual(view, { type: 'text', format: 'text', text })
    }
})

test('a field of a form is one line, whatever its value', async () => {
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const { view } = await show('amount=1%0D%0Auser%3A+admin%E2%80%A8x%0By&tab=a%09b', form)
  assert.deepEqual(view, {
    type: 'text',
    format: 'form',
    text: 'amount: 1\\r\\nuser: admin\\u2028x\\u000by\ntab: a\tb',
  })
})
