// Multiplexes byte streams over one connection with the yamux protocol. Imports nothing of the project.
export { joinInPlace } from './buffers.ts'
export type { Connection, SendCallback } from './connection.ts'
export { ProtocolError } from './frame.ts'
export { Session, type SessionOptions } from './session.ts'
export { YamuxStream } from './stream.ts'
