// `adit requests list`.
import type { ExchangeSummary } from '../../inspector/api.ts'
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
    empty: 'No such requests are recorded.',
    shrink: ['PATH', 'NOTE'],
  })
}

function statusCell({ status, state }: Pick<ExchangeSummary, 'status' | 'state'>): Cell {
  if (status === undefined) return state === 'pending' ? dim('…') : red('none')
  const text = String(status)
  if (status >= 500) return red(text)
  return status >= 400 ? yellow(text) : green(text)
}

function note({ kind, messages, replayOf, edited, state }: ExchangeSummary): string {
  const parts = [
    kind === 'http' ? '' : `${kind === 'sse' ? 'events' : 'WebSocket'}, ${messages} messages`,
    replayOf === undefined ? '' : `replay of ${replayOf}${edited ? ', edited' : ''}`,
    state === 'aborted' || state === 'unrecorded' ? state : '',
  ]
  return parts.filter((part) => part !== '').join('; ')
}
