import { UNKNOWN_METHOD } from '../api.ts'
import type { RecordedExchange } from '../store/exchange.ts'

/** Why the exchange cannot be replayed: as it was, or edited. */
export function findReplayProblem(
  { kind, method, request }: RecordedExchange,
  isEdited = false,
): string | undefined {
  if (kind === 'websocket') return 'A WebSocket cannot be replayed.'
  if (method === UNKNOWN_METHOD) return 'The request was not recorded, so it cannot be replayed.'
  if (!isEdited && request.body.isCut)
    return 'Its body was not recorded as a whole. Replay it with a body of your own.'
  return undefined
}
