// The delay that guessed passwords cause.
import { test } from 'node:test'
import { assertUndelayed } from '../../support/network/latency.ts'
import { startPasswordEdge } from './password-edge.ts'

test('a flood of wrong passwords delays other requests by less than 300 ms', async (t) => {
  const { edge, guess, open } = await startPasswordEdge(t)
  const attacked = await open('flooded')
  const target = { url: `${edge.url}/.adit/health` }
  let client = 0
  await assertUndelayed(t, [target], () =>
    Promise.all(
      Array.from({ length: 20 }, async () => {
        for (let index = 0; index < 3; index += 1) {
          client += 1
          await guess(attacked.host, `100.64.${(client >> 8) & 255}.${client & 255}`)
        }
      }),
    ),
  )
  attacked.close()
})
