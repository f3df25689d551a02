// What an export as HAR has.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { HeaderMask } from '../../src/inspector/display/mask.ts'
import { sendHar } from '../../src/inspector/server/har-export.ts'
import { RecordedExchange } from '../../src/inspector/store/exchange.ts'
import { ExchangeStore } from '../../src/inspector/store/exchange-store.ts'
import { RecordedBody } from '../../src/inspector/store/recorded-body.ts'
import type { Test } from '../support/cleanup.ts'
import { listen } from '../support/network/listen.ts'
import { frame, openWebSocket } from './websocket-support.ts'

interface Entry {
  request: { postData: { text: string } }
  _webSocketMessages: { opcode: number; data: string }[]
}

async function exportHar(t: Test, exchange: RecordedExchange) {
  const port = await listen(
    t,
    createServer((_request, response) => {
      void sendHar(response, [exchange], { mask: new HeaderMask([]), isRevealed: false, version: '1' })
    }),
  )
  const { log } = (await (await fetch(`http://127.0.0.1:${port}/`)).json()) as {
    log: { entries: Entry[] }
  }
  return log.entries[0]
}

test('an export has messages as browsers read them: text as it is, the others in Base64', async (t) => {
  const store = new ExchangeStore()
  const parser = openWebSocket(store)
  const payload = Buffer.from([0, 1, 0xff])
  parser.fromServer(frame(0x81, Buffer.from('ü')), 0)
  parser.fromServer(frame(0x82, payload), 0)
  parser.fromServer(frame(0x89, payload), 0)
  parser.fromServer(frame(0x88, Buffer.from('\x03\xe8bye', 'latin1')), 0)
  const messages = (await exportHar(t, store.all()[0] as RecordedExchange))?._webSocketMessages
  assert.deepEqual(
    messages?.map(({ opcode, data }) => [opcode, data]),
    [
      [1, 'ü'],
      [2, payload.toString('base64')],
      [9, payload.toString('base64')],
      [8, Buffer.from('\x03\xe8bye', 'latin1').toString('base64')],
    ],
  )
})

test('an export reads each body once, and formats nothing', async (t) => {
  const tunnel = { name: 'app', url: 'https://app.example', target: '' }
  const headers = ['Content-Type', 'application/json']
  const head = { method: 'POST', path: '/', httpVersion: '1.1', headers }
  const exchange = new RecordedExchange(tunnel, head, 0)
  exchange.request.body.add(Buffer.from('{"a":[1]}'))
  exchange.request.body.isComplete = true
  const { get } = Object.getOwnPropertyDescriptor(RecordedBody.prototype, 'content') ?? {}
  const reads = t.mock.getter(RecordedBody.prototype, 'content', get as () => Buffer)
  assert.equal((await exportHar(t, exchange))?.request.postData.text, '{"a":[1]}')
  assert.equal(reads.mock.callCount(), 1)
})
