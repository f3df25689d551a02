// The tokens file of a self-hosted edge: edited by commands, in force at once, and never replaced by a bad one.
import assert from 'node:assert/strict'
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openTokensFile, TokensFileError } from '../../src/edge-sdk/index.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases.ts'
import { run } from '../support/process.ts'
import { until } from '../support/until.ts'

function setUp(t: Test) {
  const file = join(createFolder(t), 'tokens.json')
  const command = (...words: string[]) => run(t, ['tokens-file', ...words, '--file', file], {})
  const add = async (workspace: string) => (await command('add', workspace)).stdout.trim()
  const gone: string[] = []
  const notices: string[] = []
  const open = () => {
    const verifier = openTokensFile(file, {
      tunnelDomain: 'tunnels.example.com',
      onRevoked: (id) => gone.push(id),
      onNotice: (line) => notices.push(line),
    })
    atEnd(t, verifier.close)
    return verifier
  }
  return { file, command, add, open, gone, notices }
}

test('a key added by the command is good, and the file does not hold it', async (t) => {
  const { file, command, open } = setUp(t)
  const { stdout, stderr, code } = await command('add', 'acme', '--label', 'laptop')
  assert.equal(code, 0)
  assert.match(stdout, /^adit_[0-9A-Za-z]{49}\n$/)
  assert.match(stderr, /Added tok_\w+ for the workspace "acme"/)
  const text = readFileSync(file, 'utf8')
  assert.ok(!text.includes(stdout.trim()))
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const [token] = JSON.parse(text).tokens
  assert.deepEqual(await open().verify(stdout.trim()), {
    valid: true,
    keyId: token.id,
    workspace: { slug: 'acme', name: 'acme', provisioned: true, tunnelBase: 'acme.tunnels.example.com' },
  })
})

test('adding and removing are in force within a second, and removing tells what to close', async (t) => {
  const { command, add, open, gone } = setUp(t)
  const first = await add('acme')
  const verifier = open()
  const second = await add('other')
  const listed = JSON.parse((await command('list', '--json')).stdout)
  assert.deepEqual(
    listed.map(({ workspace }: { workspace: string }) => workspace),
    ['acme', 'other'],
  )
  assert.ok(!JSON.stringify(listed).includes('hash'))
  await until('the second is good', async () => (await verifier.verify(second)).valid, 1_500)
  const { code } = await command('remove', listed[0].id)
  assert.equal(code, 0)
  await until('the first is refused', async () => !(await verifier.verify(first)).valid, 1_500)
  assert.deepEqual(gone, [listed[0].id])
  assert.deepEqual(await verifier.verify(first), { valid: false, reason: 'revoked' })
  assert.deepEqual(await verifier.verify('adit_other'), { valid: false, reason: 'unknown' })
})

test('a bad file is refused with a line that says where, and the last good one stays in force', async (t) => {
  const { file, add, open, gone, notices } = setUp(t)
  const key = await add('acme')
  const good = readFileSync(file, 'utf8')
  const { tokens } = JSON.parse(good)
  const verifier = open()
  const bad: [text: string, says: RegExp][] = [
    ['{"tokens": [\n "adit_secret" x', /is refused: it is no valid JSON, in line 2\./],
    ['', /no valid JSON: it is empty/],
    ['[]', /must be an object with a list "tokens"/],
    ['null', /must be an object/],
    [JSON.stringify({ tokens: [{ ...tokens[0], hash: 'ABC' }] }), /tokens\[0\]\.hash must be the SHA-256/],
    [
      JSON.stringify({ tokens: [{ ...tokens[0], workspace: 'A B' }] }),
      /tokens\[0\]\.workspace must be lower-case/,
    ],
    [JSON.stringify({ tokens: [null] }), /tokens\[0\]\.id must be/],
    [JSON.stringify({ tokens: [tokens[0], tokens[0]] }), /tokens\[1\]\.id is there twice/],
  ]
  for (const [text, says] of bad) {
    notices.length = 0
    writeFileSync(`${file}.tmp`, text)
    renameSync(`${file}.tmp`, file)
    await until(`it is refused: ${text}`, () => notices.length > 0)
    assert.match(notices[0] as string, says)
    assert.match(notices[0] as string, /What it held before stays in force: 1 token\.$/)
    assert.equal((await verifier.verify(key)).valid, true)
    writeFileSync(file, good)
    await until('it is good again', () =>
      notices.some((line) => line.includes('read again and holds 1 token.')),
    )
  }
  notices.length = 0
  rmSync(file)
  await until('that it is gone is said', () => notices.length > 0)
  assert.match(notices[0] as string, /There is no tokens file/)
  assert.equal((await verifier.verify(key)).valid, true)
  assert.deepEqual(gone, [])
})

test('a file that is bad or missing from the start cannot be opened', (t) => {
  const { file, open } = setUp(t)
  assert.throws(
    open,
    (error: Error) =>
      error instanceof TokensFileError && /"adit tokens-file add" makes one/.test(error.message),
  )
  mkdirSync(file)
  assert.throws(open, /cannot be read: it is no file/)
})

test('a folder that cannot be looked into is a bad file, not the end of the edge', async (t) => {
  const { file, add, open, notices } = setUp(t)
  const key = await add('acme')
  const verifier = open()
  rmSync(file)
  symlinkSync(file, file)
  await until('it is said', () => notices.some((line) => line.includes('cannot be read')))
  assert.equal((await verifier.verify(key)).valid, true)
})

test('a token that changes hands is told as gone', async (t) => {
  const { file, add, open, gone } = setUp(t)
  const key = await add('acme')
  const verifier = open()
  const { tokens } = JSON.parse(readFileSync(file, 'utf8'))
  const { id, hash } = tokens[0]
  writeFileSync(file, JSON.stringify({ tokens: [{ id, hash, workspace: 'other' }] }))
  await until('it is told', () => gone.includes(id))
  const verdict = await verifier.verify(key)
  assert.equal(verdict.valid && verdict.workspace.slug, 'other')
})

test('many edits at once are all there', async (t) => {
  const { command } = setUp(t)
  const ended = await Promise.all(Array.from({ length: 8 }, (_, index) => command('add', `w${index}`)))
  for (const { code, stderr } of ended) assert.equal(code, 0, stderr)
  const listed = JSON.parse((await command('list', '--json')).stdout)
  assert.equal(listed.length, 8)
})

test('an edit changes the file behind a link and leaves its permissions as they are', async (t) => {
  const { file, add, command } = setUp(t)
  await add('acme')
  const real = `${file}.real`
  renameSync(file, real)
  chmodSync(real, 0o640)
  symlinkSync(real, file)
  await add('other')
  assert.equal(statSync(real).mode & 0o777, 0o640)
  assert.equal(JSON.parse(readFileSync(real, 'utf8')).tokens.length, 2)
  assert.equal(JSON.parse((await command('list', '--json')).stdout).length, 2)
})

test('what goes wrong is said with its remedy', async (t) => {
  const { file, command, add } = setUp(t)
  const cases: [words: string[], code: number, says: RegExp][] = [
    [['list'], 1, /There is no tokens file .+\. "adit tokens-file add" makes one\./],
    [['remove', 'tok_x'], 1, /There is no token tok_x in /],
    [['add', 'Not A Slug'], 2, /workspace must be lower-case letters/],
    [['add', 'acme', '--label', 'x'.repeat(81)], 2, /label must be text of at most 80/],
    [['add'], 2, /<workspace> is missing/],
  ]
  for (const [words, code, says] of cases) {
    const ended = await command(...words)
    assert.equal(ended.code, code, words.join(' '))
    assert.equal(ended.stdout, '')
    assert.match(ended.stderr, says)
  }
  await add('acme')
  writeFileSync(`${file}.lock`, '')
  const locked = await command('add', 'other', '--json')
  assert.equal(locked.code, 1)
  assert.match(JSON.parse(locked.stderr).message, /remove .+tokens\.json\.lock and try again/)
  rmSync(`${file}.lock`)
  writeFileSync(file, 'no')
  assert.match((await command('add', 'other')).stderr, /is refused: /)
  await sleep(0)
  assert.equal(readFileSync(file, 'utf8'), 'no', 'a bad file is left to whoever made it')
})
