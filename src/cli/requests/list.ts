// `adit requests list`.
import { type ExchangeSummary, LIMITS } from '../../inspector/api.ts'
import { oneLine } from '../../lib/net/untrusted-text.ts'
import { formatBytes } from '../bytes.ts'
import { formatDuration } from '../duration.ts'
import type { Io } from '../io.ts'
import { dim, green, red, yellow } from '../style.ts'
import type { Cell } from '../table.ts'
import { type FilterInput, readLimit, toQuery } from './filters.ts'
import { listExchanges } from './recorders.ts'

const LIMIT_DEFAULT = 50

export async function list(input: FilterInput & { limit: string | undefined }, io: Io): Promise<void> {
  const limit = readLimit(input.limit) ?? String(LIMIT_DEFAULT)
  const found = await listExchanges({ ...toQuery(input), limit })
  await io.list([found.slice(0, Number(limit))], {
    columns: {
      ID: ({ id }) => id,
      STARTED: ({ startedAt }) => io.time(startedAt),
      TUNNEL: ({ tunnel }) => oneLine(tunnel),
      STATUS: statusCell,
      TIME: ({ lastByteMs }) => (lastByteMs === undefined ? '' : formatDuration(lastByteMs)),
      SIZE: ({ responseBytes }) => formatBytes(responseBytes),
      METHOD: ({ method }) => oneLine(method),
      PATH: ({ path }) => oneLine(path),
      NOTE: note,
    },
    empty: found.length > 0 ? '' : await explainNone(input),
    shrink: ['PATH', 'NOTE'],
  })
}

const NOTHING_FOUND = 'No such requests are recorded.'

/** Visitors get 502 from the edge if the local server is down, so users look for that status. */
async function explainNone({ status, ...input }: FilterInput): Promise<string> {
  if (!status?.startsWith('5')) return NOTHING_FOUND
  const query = { ...toQuery({ ...input, status: 'none' }), limit: String(LIMITS.pageSize) }
  const count = (await listExchanges(query)).filter(({ state }) => state === 'aborted').length
  if (count === 0) return NOTHING_FOUND
  const requests = count === 1 ? '1 request' : `${count} requests`
  return `${NOTHING_FOUND} ${requests} got no response from the local server: --status none`
}

function statusCell({ status, state }: Pick<ExchangeSummary, 'status' | 'state'>): Cell {
  if (status === undefined) return state === 'pending' ? dim('…') : red('none')
  const text = String(status)
  if (status >= 500) return red(text)
  return status >= 400 ? yellow(text) : green(text)
}

function note(exchange: ExchangeSummary): string {
  const { kind, messages, replayOf, edited } = exchange
  const parts = [
    kind === 'http' ? '' : `${kind === 'sse' ? 'events' : 'WebSocket'}, ${messages} messages`,
    replayOf === undefined ? '' : `replay of ${replayOf}${edited ? ', edited' : ''}`,
    describeFailure(exchange),
  ]
  return parts.filter((part) => part !== '').join('; ')
}

function describeFailure({ state, status, problem }: ExchangeSummary): string {
  if (state !== 'aborted' && state !== 'unrecorded') return ''
  return status === undefined && problem !== undefined ? oneLine(problem) : state
}
