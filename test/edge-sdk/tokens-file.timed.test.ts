// The delay after which an edited tokens file takes effect.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../support/until.ts'
import { setUpTokensFile } from './tokens-file.ts'

test('added and removed keys take effect within a second, and a removal calls onRevoked', async (t) => {
  const { command, add, open, revokedIds } = setUpTokensFile(t)
  const first = await add('acme')
  const verifier = open()
  const second = await add('other')
  await until('the second is valid', async () => (await verifier.verify(second)).valid, 1_000)
  const listed = JSON.parse((await command('list', '--json')).stdout)
  assert.deepEqual(
    listed.map(({ workspace }: { workspace: string }) => workspace),
    ['acme', 'other'],
  )
  assert.ok(!JSON.stringify(listed).includes('hash'))
  const { code } = await command('remove', listed[0].id)
  assert.equal(code, 0)
  await until('the first is rejected', async () => !(await verifier.verify(first)).valid, 1_000)
  assert.deepEqual(revokedIds, [listed[0].id])
  assert.deepEqual(await verifier.verify(first), { valid: false, reason: 'revoked' })
  assert.deepEqual(await verifier.verify('adit_other'), { valid: false, reason: 'unknown' })
})
