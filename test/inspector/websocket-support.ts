// A recorded WebSocket, without a tunnel.
import { constants, deflateRawSync } from 'node:zlib'
import { StreamParser } from '../../src/inspector/recording/stream-parser.ts'
import type { ExchangeStore } from '../../src/inspector/store/exchange-store.ts'

const HEADERS = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'
export const UPGRADE_REQUEST = Buffer.from(`GET /ws HTTP/1.1\r\n${HEADERS}\r\n`)
export const UPGRADE_RESPONSE = Buffer.from(
  `HTTP/1.1 101 x\r\nSec-WebSocket-Extensions: permessage-deflate\r\n${HEADERS}\r\n`,
)

/** It may have compressed messages. */
export function openWebSocket(store: ExchangeStore): StreamParser {
  const parser = new StreamParser(store, { name: 'app', url: '', target: '' })
  parser.fromVisitor(UPGRADE_REQUEST, 0)
  parser.fromServer(UPGRADE_RESPONSE, 0)
  return parser
}

/** A frame of at most 125 bytes. `start` is its first byte. */
export const frame = (start: number, payload: Buffer) =>
  Buffer.concat([Buffer.from([start, payload.length]), payload])

/** A text message. */
export const compressedFrame = (text: string) =>
  frame(0xc1, deflateRawSync(text, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4))

export const repeat = (bytes: Buffer, times: number) =>
  Buffer.concat(Array.from({ length: times }, () => bytes))
