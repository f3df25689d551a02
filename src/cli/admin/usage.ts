import { resetUsage, showCounters, showDays } from '../../server/domain/usage/reset.ts'
import type { Io } from '../io.ts'
import { withServices } from './with-services.ts'

interface Counters {
  requests: bigint
  bytesIn: bigint
  bytesOut: bigint
  events: bigint
}

const counterColumns = {
  REQUESTS: ({ requests }: Counters) => String(requests),
  'BYTES IN': ({ bytesIn }: Counters) => String(bytesIn),
  'BYTES OUT': ({ bytesOut }: Counters) => String(bytesOut),
  EVENTS: ({ events }: Counters) => String(events),
}

export async function show(
  { workspace, day }: { workspace: string; day: string | undefined },
  io: Io,
): Promise<void> {
  if (day === undefined) {
    const days = await withServices((services) => showDays(services, workspace))
    return io.list([days], {
      columns: {
        DAY: ({ day }) => day,
        ...counterColumns,
        'PEAK TUNNELS': ({ peakTunnels }) => String(peakTunnels),
      },
      empty: 'No usage.',
    })
  }
  const counters = await withServices((services) => showCounters(services, workspace, day))
  await io.list([counters], {
    columns: {
      EDGE: ({ edge }) => edge,
      NAME: ({ name }) => name ?? '',
      EPOCH: ({ epoch }) => epoch,
      ...counterColumns,
      'LAST ACTIVITY': ({ lastSeen }) => io.time(lastSeen),
    },
    empty: 'No usage.',
    shrink: ['EPOCH', 'NAME', 'LAST ACTIVITY'],
  })
}

export async function reset(
  input: { workspace: string; day: string; edge: string | undefined },
  io: Io,
): Promise<void> {
  const result = await withServices((services, actor) => resetUsage(services, actor, input))
  const from = input.edge === undefined ? '' : ` reported by ${input.edge}`
  io.data(
    result,
    `Deleted the usage of workspace "${input.workspace}" on ${input.day}${from}: ` +
      `${result.counters} counters, ${result.minutes} minutes.`,
  )
  io.info(
    input.edge === undefined
      ? 'Running edges report their totals of that day again; usage of edges that have stopped is gone.'
      : 'If the edge is running, it reports its total of that day again. To stop it: ' +
          `adit admin edge revoke ${input.edge}`,
  )
}
