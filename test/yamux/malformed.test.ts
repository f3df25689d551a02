import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ProtocolError } from '../../src/yamux/index.ts'
import { until } from '../support/until.ts'
import {
  ACK,
  accepted,
  DATA,
  FIN,
  frame,
  GO_AWAY,
  PING,
  type RawFrame,
  RST,
  rawPeer,
  SYN,
  WINDOW_UPDATE,
} from './support.ts'

const open: RawFrame = { type: WINDOW_UPDATE, flags: SYN, id: 1 }
const KIB = 1024

const malformed: [title: string, frames: RawFrame[], reason: RegExp][] = [
  ['another version', [{ type: DATA, version: 1, id: 1 }], /unsupported version 1/],
  ['an unknown type', [{ type: 4, id: 1 }], /unknown frame type 4/],
  ['a reserved flag', [{ type: DATA, flags: SYN | 0x10, id: 1 }], /reserved flags are set: 0x11/],
  ['a reserved flag in the upper byte', [{ type: DATA, flags: 0x100, id: 1 }], /reserved flags/],
  ['data of the session', [{ type: DATA, flags: SYN, id: 0 }], /invalid stream id 0/],
  ['a window update of the session', [{ type: WINDOW_UPDATE, id: 0, length: 1 }], /invalid stream id 0/],
  ['a ping of a stream', [open, { type: PING, flags: SYN, id: 1 }], /invalid stream id 1/],
  ['a go away of a stream', [{ type: GO_AWAY, id: 1 }], /invalid stream id 1/],
  ['a ping without a flag', [{ type: PING }], /invalid flags of a ping/],
  ['a ping with FIN', [{ type: PING, flags: SYN | FIN }], /invalid flags of a ping/],
  ['a stream id of our parity', [{ type: DATA, flags: SYN, id: 2 }], /stream id 2 has the wrong parity/],
  ['a stream id that is open', [open, open], /stream id 1 is used twice/],
  [
    'a stream id that was closed',
    [open, { type: DATA, flags: RST, id: 1 }, { type: DATA, flags: SYN, id: 1 }],
    /stream id 1 is used twice/,
  ],
  ['data for a stream that was never opened', [{ type: DATA, id: 1, payload: 'x' }], /never opened/],
  ['data for a stream of ours that was never opened', [{ type: DATA, id: 2, payload: 'x' }], /never opened/],
  [
    'data for a skipped stream',
    [
      { ...open, id: 5 },
      { type: DATA, id: 3, payload: 'x' },
    ],
    /never opened/,
  ],
  ['a window above 2^32', [open, { type: WINDOW_UPDATE, id: 1, length: 0xffff_ffff }], /exceeds 2\^32/],
  [
    'a window above 2^32 in small steps',
    [open, ...Array(4).fill({ type: WINDOW_UPDATE, id: 1, length: 0x4000_0000 })],
    /exceeds 2\^32/,
  ],
  ['a frame larger than the window', [open, { type: DATA, id: 1, length: 256 * KIB + 1 }], /window exceeded/],
  ['a first frame larger than the window', [{ type: DATA, flags: SYN, id: 1, length: 2 ** 31 }], /exceeded/],
  [
    'frames that exceed the window together',
    [open, { type: DATA, id: 1, payload: 'x'.repeat(256 * KIB) }, { type: DATA, id: 1, length: 1 }],
    /receive window exceeded: 1 bytes sent, 0 allowed/,
  ],
  [
    'a huge frame for a closed stream',
    [open, { type: DATA, flags: RST, id: 1 }, { type: DATA, id: 1, length: 2 ** 31 }],
    /frame of 2147483648 bytes/,
  ],
  [
    'data after FIN',
    [open, { type: DATA, flags: FIN, id: 1 }, { type: DATA, id: 1, payload: 'x' }],
    /data after FIN/,
  ],
  [
    'a second FIN',
    [open, { type: DATA, flags: FIN, id: 1 }, { type: DATA, flags: FIN, id: 1 }],
    /second FIN/,
  ],
]

for (const [title, frames, reason] of malformed)
  test(`${title} closes the session with a protocol error`, async (t) => {
    const peer = await rawPeer(t)
    peer.socket.write(Buffer.concat(frames.map(frame)))
    const error = await peer.server.closed
    assert.ok(error instanceof ProtocolError, String(error))
    assert.match(error.message, reason)
    const isGoAway = ({ type, length }: RawFrame) => type === GO_AWAY && length === 1
    await until('the peer gets a GoAway frame', () => peer.frames().some(isGoAway))
    assert.equal(peer.server.session.streams, 0)
  })

test('frames for a stream that was closed are discarded', async (t) => {
  const { socket, server, frames } = await rawPeer(t)
  socket.write(frame(open))
  const stream = await accepted(server)
  stream.destroy()
  const late: RawFrame[] = [
    { type: DATA, id: 1, payload: 'late' },
    { type: WINDOW_UPDATE, id: 1, length: 1_000 },
    { type: DATA, id: 1, flags: FIN },
    { type: WINDOW_UPDATE, id: 1, flags: RST },
    { type: PING, flags: SYN, length: 7 },
  ]
  socket.write(Buffer.concat(late.map(frame)))
  await until('the session goes on', () => frames().some(({ type, flags }) => type === PING && flags === ACK))
  assert.equal(frames().filter(({ flags }) => flags === RST).length, 1)
})

test('streams may be opened slightly out of order', async (t) => {
  const { socket, server } = await rawPeer(t)
  socket.write(Buffer.concat([5, 1, 3, 9, 7].map((id) => frame({ type: DATA, flags: SYN, id }))))
  await until('all are accepted', () => server.streams.length === 5)
})

test('frames are understood however the bytes are split', async (t) => {
  const { socket, server } = await rawPeer(t)
  const bytes = Buffer.concat([
    frame({ type: DATA, flags: SYN, id: 1, payload: 'hello ' }),
    frame({ type: PING, flags: SYN, length: 1 }),
    frame({ type: DATA, flags: FIN, id: 1, payload: 'world' }),
  ])
  const received: string[] = []
  for (const byte of bytes) {
    socket.write(Buffer.of(byte))
    await new Promise(setImmediate)
  }
  const stream = await accepted(server)
  for await (const chunk of stream) received.push(String(chunk))
  assert.equal(received.join(''), 'hello world')
})
