// TOTP codes and password hashes against values of other implementations.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { createPasswordHasher } from '../../../src/server/auth/passwords.ts'
import { describeTotp, verifyTotp } from '../../../src/server/auth/totp.ts'

const secret = Buffer.from('12345678901234567890')

/** RFC 6238, appendix B: the last six digits. */
const vectors: [seconds: number, code: string][] = [
  [59, '287082'],
  [1_111_111_109, '081804'],
  [1_111_111_111, '050471'],
  [1_234_567_890, '005924'],
  [2_000_000_000, '279037'],
  [20_000_000_000, '353130'],
]

test('codes are those of RFC 6238, from one step before to one step after', () => {
  for (const [seconds, code] of vectors) {
    const steps = [-2, -1, 0, 1, 2].map((step) => verifyTotp(secret, code, (seconds + 30 * step) * 1000))
    assert.deepEqual(steps, [false, true, true, true, false], code)
  }
})

test('what is not six ASCII digits is no code', () => {
  for (const text of [
    '',
    '28708',
    '2870822',
    ' 287082',
    '287082\n',
    '２８７０８２',
    '-87082',
    '0x2870',
    '2870.2',
  ])
    assert.equal(verifyTotp(secret, text, 59_000), false, JSON.stringify(text))
})

test('the URI has the secret in base32 and an encoded account', () => {
  const { secret: text, uri } = describeTotp(secret, 'ann+x@example.com')
  assert.equal(text, 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ')
  assert.equal(uri, `otpauth://totp/Adit:ann%2Bx%40example.com?secret=${text}&issuer=Adit&digits=6&period=30`)
})

test('a password matches its hash, and that of another tool', async () => {
  const { hash, verify } = createPasswordHasher(randomBytes)
  // From Python: hashlib.scrypt(b'correct horse', salt=b'0001…0e0f', n=2**14, r=16, p=1, dklen=64)
  const other =
    '000102030405060708090a0b0c0d0e0f:' +
    '9372e2d20f7c9ba55e54d10569dfe24824c5765383f46b040e9ac7b33041339c' +
    '514173900cb63a37c935c0e2f40cfe2cb39bee5fe58f54715c1fd913c4638373'
  for (const stored of [other, await hash('correct horse')]) {
    assert.equal(await verify({ hash: stored, password: 'correct horse' }), true)
    for (const password of ['', 'correct hors', 'correct horse ', 'Correct horse', 'x'.repeat(1_000)])
      assert.equal(await verify({ hash: stored, password }), false)
  }
  assert.notEqual(await hash('correct horse'), await hash('correct horse'))
})
