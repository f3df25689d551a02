// Integers above 2^53 reach the agent without rounding.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serve } from '../support/api/server.ts'
import { addUsage } from '../support/api/usage.ts'
import { engines } from '../support/databases/create.ts'
import { callMessage, exchangeLines, postMessage } from './agent.ts'

const BYTES = 9_007_199_254_740_993n

for (const engine of engines)
  for (const variant of ['A', 'B'])
    test(`${engine}, variant ${variant}: integers above 2^53 reach the agent without rounding, over both transports`, async (t) => {
      const server = await serve(t, { engine, env: { ADIT_API_VARIANT: variant } })
      await addUsage(server, { requests: 1n, bytesIn: BYTES, lastSeen: server.services.clock() })
      const access = { url: server.url, apiKey: server.key.token }
      const message = callMessage(1, 'get_usage', { days: 1 })
      const overHttp = await (await postMessage(access, message)).text()
      const overStdio = await exchangeLines(t, access, [message])
      for (const written of [overHttp, overStdio]) {
        const { structuredContent, content } = rawResult(written)
        assert.match(structuredContent, new RegExp(`"totalBytes":${BYTES}[,}]`))
        assert.match(content, new RegExp(`${BYTES} bytes in both directions`))
        assert.match(content, new RegExp(`\\\\"totalBytes\\\\":${BYTES}[,}]`))
        assert.doesNotMatch(written, /9007199254740992/)
      }
    })

/** Both parts of the result as text: parsing them as JSON would round. */
function rawResult(written: string) {
  const [content = '', structuredContent = ''] = written.split('"structuredContent":')
  return { content, structuredContent }
}
