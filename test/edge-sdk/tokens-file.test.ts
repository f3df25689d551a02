// The tokens file of a self-hosted edge: commands edit it, the edge reloads it, and ignores an invalid one.
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
import { test } from 'node:test'
import { TokensFileError } from '../../src/edge-sdk/index.ts'
import { until } from '../support/until.ts'
import { setUpTokensFile } from './tokens-file.ts'

test('a key added by the command is valid, and the file does not contain it', async (t) => {
  const { file, command, open } = setUpTokensFile(t)
  const { stdout, stderr, code } = await command('add', 'acme', '--label', 'laptop')
  assert.equal(code, 0)
  assert.match(stdout, /^adit_[0-9A-Za-z]{49}\n$/)
  assert.match(stderr, /Added tok_\w+ for workspace "acme"/)
  const text = readFileSync(file, 'utf8')
  assert.ok(!text.includes(stdout.trim()))
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const [token] = JSON.parse(text).tokens
  assert.deepEqual(await open().verify(stdout.trim()), {
    valid: true,
    keyId: token.id,
    workspace: {
      slug: 'acme',
      name: 'acme',
      provisioned: true,
      tunnelBase: 'acme.tunnels.example.com',
      topic: 'acme',
    },
  })
})

test('an invalid file is rejected with the position of the error, and the last valid one stays in effect', async (t) => {
  const { file, add, open, revokedIds, notices } = setUpTokensFile(t)
  const key = await add('acme')
  const valid = readFileSync(file, 'utf8')
  const { tokens } = JSON.parse(valid)
  const verifier = open()
  const invalid: [text: string, message: RegExp][] = [
    ['{"tokens": [\n "adit_secret" x', /^Invalid tokens file .+: not valid JSON \(line 2\)\./],
    ['', /not valid JSON: the file is empty/],
    ['[]', /must be an object with a list "tokens"/],
    ['null', /must be an object/],
    [JSON.stringify({ tokens: [{ ...tokens[0], hash: 'ABC' }] }), /tokens\[0\]\.hash must be the SHA-256/],
    [
      JSON.stringify({ tokens: [{ ...tokens[0], workspace: 'A B' }] }),
      /tokens\[0\]\.workspace must be lower-case/,
    ],
    [JSON.stringify({ tokens: [null] }), /tokens\[0\]\.id must be/],
    [JSON.stringify({ tokens: [tokens[0], tokens[0]] }), /tokens\[1\]\.id is a duplicate/],
  ]
  for (const [text, message] of invalid) {
    notices.length = 0
    writeFileSync(`${file}.tmp`, text)
    renameSync(`${file}.tmp`, file)
    await until(`it is rejected: ${text}`, () => notices.length > 0)
    assert.match(notices[0] as string, message)
    assert.match(notices[0] as string, /The last valid version with 1 key stays in effect\.$/)
    assert.equal((await verifier.verify(key)).valid, true)
    writeFileSync(file, valid)
    await until('it is reloaded', () => notices.some((line) => /^Reloaded .+ with 1 key\.$/.test(line)))
  }
  notices.length = 0
  rmSync(file)
  await until('the notice about the missing file', () => notices.length > 0)
  assert.match(notices[0] as string, /^Tokens file .+ not found/)
  assert.equal((await verifier.verify(key)).valid, true)
  assert.deepEqual(revokedIds, [])
})

test('a file that is invalid or missing at the start cannot be opened', (t) => {
  const { file, open } = setUpTokensFile(t)
  assert.throws(
    open,
    (error: Error) =>
      error instanceof TokensFileError && /Create it with `adit tokens-file add`/.test(error.message),
  )
  mkdirSync(file)
  assert.throws(open, /Cannot read the tokens file .+: not a regular file/)
})

test('if the file becomes unreadable, its keys stay valid', async (t) => {
  const { file, add, open, notices } = setUpTokensFile(t)
  const key = await add('acme')
  const verifier = open()
  rmSync(file)
  symlinkSync(file, file)
  await until('the notice', () => notices.some((line) => line.startsWith('Cannot read')))
  assert.equal((await verifier.verify(key)).valid, true)
})

test('a key that moves to another workspace calls onRevoked', async (t) => {
  const { file, add, open, revokedIds } = setUpTokensFile(t)
  const key = await add('acme')
  const verifier = open()
  const { tokens } = JSON.parse(readFileSync(file, 'utf8'))
  const { id, hash } = tokens[0]
  writeFileSync(file, JSON.stringify({ tokens: [{ id, hash, workspace: 'other' }] }))
  await until('onRevoked was called', () => revokedIds.includes(id))
  const result = await verifier.verify(key)
  assert.equal(result.valid && result.workspace.slug, 'other')
})

test('concurrent edits are all applied', async (t) => {
  const { command } = setUpTokensFile(t)
  const ended = await Promise.all(Array.from({ length: 8 }, (_, index) => command('add', `w${index}`)))
  for (const { code, stderr } of ended) assert.equal(code, 0, stderr)
  const listed = JSON.parse((await command('list', '--json')).stdout)
  assert.equal(listed.length, 8)
})

test('an edit follows a symbolic link and keeps the permissions of the file', async (t) => {
  const { file, add, command } = setUpTokensFile(t)
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

test('errors of the commands name the remedy', async (t) => {
  const { file, command, add } = setUpTokensFile(t)
  const cases: [args: string[], code: number, message: RegExp][] = [
    [['list'], 1, /Tokens file .+ not found\. Create it with `adit tokens-file add`\./],
    [['remove', 'tok_x'], 1, /No key tok_x in .+\. Run `adit tokens-file list`/],
    [['add', 'Not A Slug'], 2, /workspace must be lower-case letters/],
    [['add', 'acme', '--label', 'x'.repeat(81)], 2, /label must be text of at most 80/],
    [['add'], 2, /Missing argument <workspace>/],
  ]
  for (const [args, code, message] of cases) {
    const ended = await command(...args)
    assert.equal(ended.code, code, args.join(' '))
    assert.equal(ended.stdout, '')
    assert.match(ended.stderr, message)
  }
  await add('acme')
  writeFileSync(`${file}.lock`, '')
  const locked = await command('add', 'other', '--json')
  assert.equal(locked.code, 1)
  assert.match(JSON.parse(locked.stderr).message, /tokens\.json\.lock exists: .+ remove it and try again/)
  rmSync(`${file}.lock`)
  writeFileSync(file, 'no')
  assert.match((await command('add', 'other')).stderr, /Invalid tokens file /)
  assert.equal(readFileSync(file, 'utf8'), 'no', 'an invalid file is not overwritten')
})
