// Names and labels are displayed: invisible characters, and those that change the direction of the text, are
// rejected at every input.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { cleanText, DISPLAY_TEXT } from '../../../src/contract/text.ts'
import { addMember, linkFor, openBrowser, PASSWORD, serveWithOwner } from '../../support/accounts/users.ts'
import { serve } from '../../support/api/server.ts'
import { createFolder, createMigratedDatabase, engines } from '../../support/databases/create.ts'
import { run } from '../../support/processes/process.ts'

/** One of each kind, by its code point. */
const rejected = [
  0x00, 0x0a, 0x1b, 0x7f, 0x9b, 0xad, 0x34f, 0x61c, 0x115f, 0x180e, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f,
  0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2060, 0x2066, 0x2067, 0x2068, 0x2069, 0x3164,
  0xfe0f, 0xfeff, 0xfff9, 0xd800, 0xe0001, 0xe0041, 0xe0100,
]
const formatCodePoint = (codePoint: number) => `U+${codePoint.toString(16).toUpperCase().padStart(4, '0')}`

/** Emoji that need a joiner or a selector, and letters of many scripts with their marks. */
const accepted = [
  '👩‍💻 laptop',
  '👩🏽‍🚀',
  '❤️‍🔥',
  '🏳️‍🌈',
  '🤷‍♂️',
  '1️⃣',
  '☎︎',
  'e\u0301',
  'Ελένη',
  'שלום',
  'علي',
  'नमस्ते',
  '日本語',
  // Hindi, Sinhala, Persian and Bengali with U+200C or U+200D.
  'क्\u200dष और क्\u200cष',
  'ශ්\u200dරී ලංකා',
  'می\u200cخواهم',
  'কার\u200d্য',
]

for (const engine of engines)
  test(`${engine}: a label with an invisible character is 400, which names it`, async (t) => {
    const server = await serve(t, { engine })
    for (const codePoint of rejected) {
      const { status, json } = await server.post('/tokens', {
        label: `ab${String.fromCodePoint(codePoint)}c`,
      })
      assert.deepEqual([status, json.error], [400, 'invalid_request'], formatCodePoint(codePoint))
      const message = `must not contain ${formatCodePoint(codePoint)}, a control or invisible character (character 3)`
      assert.deepEqual(json.details, [{ path: '/body/label', message }])
    }
    for (const label of accepted) {
      const { status, json } = await server.post('/tokens', { label })
      assert.deepEqual([status, json.label], [201, label], label)
    }
  })

test('the dashboard rejects the same characters in labels and user names', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const link = await linkFor(server, 'bob@example.com', 'member')
  for (const codePoint of rejected) {
    const text = `evil${String.fromCodePoint(codePoint)}gnp.exe`
    for (const [path, body] of [
      ['/workspaces/acme/keys', { label: text }],
      ['/account/name', { name: text }],
      ['/links/redeem', { link, name: text, password: PASSWORD }],
    ] as const) {
      const { status, json } = await ann.post(path, body)
      assert.equal(status, 400, `${path} ${formatCodePoint(codePoint)}`)
      assert.ok(json.details[0].message.includes(formatCodePoint(codePoint)), json.details[0].message)
    }
  }
  const blank = await ann.post('/account/name', { name: '   ' })
  assert.deepEqual(blank.json.details, [{ path: '/body/name', message: 'must not be blank' }])
})

test('admin commands and the tokens file reject the same characters', async (t) => {
  const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite') }
  await run(t, ['admin', 'workspace', 'create', 'acme'], env)
  const file = join(createFolder(t), 'tokens.json')
  for (const args of [
    ['admin', 'workspace', 'create', 'other', '--name', 'a\u202eb'],
    ['admin', 'key', 'create', '--workspace', 'acme', '--label', 'a\u202eb'],
    ['admin', 'edge', 'create', 'a\u202eb'],
    ['tokens-file', 'add', 'acme', '--label', 'a\u202eb', '--file', file],
  ]) {
    const { code, stderr } = await run(t, args, env)
    assert.notEqual(code, 0, args.join(' '))
    assert.match(stderr, /U\+202E/, args.join(' '))
  }
})

test('a User-Agent is shown as one line without such characters', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const { email } = await addMember(server, 'Ann', 'owner')
  const browser = openBrowser(server.url)
  const agent = 'Evil\u00ad\u0085Agent'
  await browser.call('POST', '/sign-in', { email, password: PASSWORD }, { 'user-agent': agent })
  const { sessions } = (await browser.get('/account/sessions')).json
  assert.ok(sessions.some((session: { agent: string }) => session.agent === 'Evil Agent'))
})

test('text that cannot be rejected is sanitized to one line', () => {
  assert.equal(cleanText(' a\u202eb\u2066\r\n c\u200b\ufeff ', 80), 'ab c')
  assert.equal(cleanText('👩‍💻 x', 80), '👩‍💻 x')
  assert.equal(cleanText('👩‍💻', 2), '👩', 'never cut so that an invisible character ends it')
  assert.equal(cleanText('\ud800\u202e', 80), '')
  assert.equal(cleanText(`${'\u200b'.repeat(90)}Bob`, 80), 'Bob')
  assert.equal(cleanText('a\ufe0f\u200d😀', 80), 'a😀')
  const allowed = new RegExp(DISPLAY_TEXT, 'u')
  const pieces = ['a', '1', ' ', '😀', '👍', '\u200d', '\ufe0f', '\ufe0e', '\u20e3', '\u202e', '\n', '\ud800']
  const text = fc.array(fc.oneof(fc.constantFrom(...pieces), fc.string()), { maxLength: 30 })
  fc.assert(
    fc.property(text, fc.nat({ max: 20 }), (parts, most) => {
      const cleaned = cleanText(parts.join(''), most)
      return allowed.test(cleaned) && [...cleaned].length <= most
    }),
  )
})

test('a joiner is accepted between letters of a script that uses it, and nowhere else', () => {
  const allowed = new RegExp(DISPLAY_TEXT, 'u')
  const [ka, meem, virama] = ['\u0915', '\u0645', '\u094d']
  for (const joiner of ['\u200c', '\u200d']) {
    for (const text of [`${ka}${virama}${joiner}${ka}`, `${meem}${joiner}${meem}`])
      assert.ok(allowed.test(text), JSON.stringify(text))
    // At an end, doubled, or next to a space, a digit, punctuation or a letter of another script.
    for (const text of ['', ka, meem].flatMap((letter) => [
      joiner + letter,
      letter + joiner,
      `${letter}${joiner}${joiner}${letter}`,
      ...[' ', '\u0667', '\u060c', 'a', 'я', '日'].flatMap((other) => [
        letter + joiner + other,
        other + joiner + letter,
      ]),
    ]))
      assert.ok(!allowed.test(text), JSON.stringify(text))
  }
  assert.equal(cleanText(`${meem}\u200c\u200c${meem} a\u200cb`, 80), `${meem}${meem} ab`)
})

test('a selector is accepted after an emoji and in a keycap, and nowhere else', () => {
  const allowed = new RegExp(DISPLAY_TEXT, 'u')
  for (const text of ['❤️', '1️⃣', '👩🏽‍💻', '🏳️‍🌈']) assert.ok(allowed.test(text), text)
  for (const text of ['prod1\ufe0e', 'prod1\ufe0f', '#\ufe0f', 'a\u200db'])
    assert.ok(!allowed.test(text), text)
})
