// Marks the requests that /mcp sends to the APIs of its own process: only these accept the key of an agent.
// No header can mark a request, so no other client can.
import { AsyncLocalStorage } from 'node:async_hooks'

const calls = new AsyncLocalStorage<true>()

export const asMcpCall = <T>(send: () => Promise<T>): Promise<T> => calls.run(true, send)

export const isMcpCall = (): boolean => calls.getStore() === true
