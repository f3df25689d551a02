import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { isBasicAuthPassword, isBasicAuthUser } from '../../../src/lib/credentials/basic-auth.ts'
import { hashPassword, isPasswordHash, verifyPassword } from '../../../src/lib/credentials/password-hash.ts'

test('a password matches its hash, and no other one does', async () => {
  const hash = await hashPassword('correct horse', randomBytes)
  assert.match(await hashPassword('correct horse', randomBytes, 'memory'), /^\$scrypt\$ln=14,r=8,p=1\$/)
  assert.match(hash, /^\$scrypt\$ln=14,r=8,p=5\$[\w+/]{22}\$[\w+/]{43}$/)
  assert.ok(await verifyPassword('correct horse', hash))
  for (const wrong of ['', 'correct hors', 'Correct horse', 'correct horse '])
    assert.ok(!(await verifyPassword(wrong, hash)))
})

test('the same password has another hash each time, and both forms of an accent match', async () => {
  const [one, two] = [
    await hashPassword('caf\u00e9-caf\u00e9', randomBytes),
    await hashPassword('caf\u00e9-caf\u00e9', randomBytes),
  ]
  assert.notEqual(one, two)
  assert.ok(await verifyPassword('cafe\u0301-cafe\u0301', one))
})

test('a hash of other tools is verified with its own cost', async () => {
  // From Python: hashlib.scrypt(b'correct horse', salt=b'0123456789abcdef', n=2**10, r=8, p=1, dklen=32)
  const hash = '$scrypt$ln=10,r=8,p=1$MDEyMzQ1Njc4OWFiY2RlZg$6g3umF+uVrJsObaTZhIbbTlgrvOEFcCItdwSjtPF67M'
  assert.ok(await verifyPassword('correct horse', hash))
})

test('what is not a hash, or would cost too much to verify, is rejected', async () => {
  const salt = 'A'.repeat(22)
  const digest = 'B'.repeat(43)
  const hash = (cost: string) => `$scrypt$${cost}$${salt}$${digest}`
  for (const cost of ['ln=17,r=8,p=1', 'ln=14,r=8,p=8', 'ln=10,r=8,p=1'])
    assert.ok(isPasswordHash(hash(cost)), cost)
  const rejected = [
    'ln=18,r=8,p=1',
    'ln=14,r=8,p=9',
    'ln=14,r=16,p=1',
    'ln=14,r=8,p=0',
    'ln=99,r=8,p=1',
    'ln=9,r=8,p=1',
  ]
  for (const cost of rejected) assert.ok(!isPasswordHash(hash(cost)), cost)
  const others = [
    '',
    'password',
    '$2b$10$abc',
    `${hash('ln=14,r=8,p=1')}\n`,
    hash('ln=14,r=8,p=1').slice(0, -1),
  ]
  for (const text of others) {
    assert.ok(!isPasswordHash(text))
    await assert.rejects(verifyPassword('x', text), { message: 'Not a password hash' })
  }
})

test('users and passwords are those that Basic authentication can carry', () => {
  for (const user of ['a', 'Jürgen', 'a b', 'x'.repeat(64)]) assert.ok(isBasicAuthUser(user), user)
  for (const user of ['', 'a:b', 'a\nb', 'a\u0000', 'x'.repeat(65), '\ud800'])
    assert.ok(!isBasicAuthUser(user), user)
  for (const password of ['12345678', 'with:colon', 'ünïcödé!', 'x'.repeat(128)])
    assert.ok(isBasicAuthPassword(password))
  for (const password of ['1234567', 'x'.repeat(129), 'tab\tinside', 'lone \udfff here'])
    assert.ok(!isBasicAuthPassword(password))
})

test('the length of users and passwords is that of the composed form, in code points', () => {
  assert.ok(!isBasicAuthPassword('e\u0301'.repeat(4)))
  assert.ok(isBasicAuthPassword('e\u0301'.repeat(128)))
  assert.ok(!isBasicAuthPassword('e\u0301'.repeat(129)))
  assert.ok(!isBasicAuthPassword('\u{1f600}'.repeat(4)))
  assert.ok(isBasicAuthPassword('\u{1f600}'.repeat(128)))
  assert.ok(isBasicAuthUser('e\u0301'.repeat(64)))
  // These become longer.
  assert.ok(!isBasicAuthUser('\u0958'.repeat(33)))
})
