// Multiplexes byte streams over one connection with the yamux protocol. Imports nothing of the project.
export { compact, joinInPlace } from './buffers.ts'
export type { Connection, SendCallback } from './connection.ts'
export { ProtocolError } from './frame.ts'
export { fillsMemory, payloadMemory } from './input-memory.ts'
export type { MemoryPressure } from './receive-window.ts'
export { Session, type SessionOptions } from './session.ts'
export { type StreamObserver, YamuxStream } from './stream.ts'
