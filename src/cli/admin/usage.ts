import { resetUsage, showCounters, showDays } from '../../domain/usage-reset.ts'
import type { Io } from '../io.ts'
import { withServices } from './with-services.ts'

interface Figures {
  requests: bigint
  bytesIn: bigint
  bytesOut: bigint
  events: bigint
}

const figures = {
  REQUESTS: ({ requests }: Figures) => String(requests),
  'BYTES IN': ({ bytesIn }: Figures) => String(bytesIn),
  'BYTES OUT': ({ bytesOut }: Figures) => String(bytesOut),
  EVENTS: ({ events }: Figures) => String(events),
}

export async function show(
  { workspace, day }: { workspace: string; day: string | undefined },
  io: Io,
): Promise<void> {
  if (day === undefined) {
    const days = await withServices(io, (services) => showDays(services, workspace))
    return io.list([days], {
      DAY: (one) => one.day,
      ...figures,
      'PEAK TUNNELS': (one) => String(one.peakTunnels),
    })
  }
  const counters = await withServices(io, (services) => showCounters(services, workspace, day))
  await io.list([counters], {
    EDGE: (one) => one.edge,
    NAME: (one) => one.name ?? '',
    EPOCH: (one) => one.epoch,
    ...figures,
    'LAST SEEN': (one) => one.lastSeen ?? 'never',
  })
}

export async function reset(
  given: { workspace: string; day: string; edge: string | undefined },
  io: Io,
): Promise<void> {
  const done = await withServices(io, (services, actor) => resetUsage(services, actor, given))
  const from = given.edge === undefined ? '' : ` from the edge ${given.edge}`
  io.data(
    done,
    `Reset the usage of "${given.workspace}" on ${given.day}${from}: removed ${done.counters} counters and ` +
      `${done.minutes} minutes.`,
  )
  io.info(
    given.edge === undefined
      ? 'Edges that still run report their totals for that day again; what ended runs counted is gone.'
      : `If the edge still runs, it reports its total for that day again. To stop it: adit admin edge revoke ${given.edge}`,
  )
}
