import { resetUsage, showCounters, showDays } from '../../domain/usage-reset.ts'
import { type Io, table } from '../io.ts'
import { withWorld } from './with-world.ts'

const FIGURES = ['REQUESTS', 'BYTES IN', 'BYTES OUT', 'EVENTS']

interface Figures {
  requests: bigint
  bytesIn: bigint
  bytesOut: bigint
  events: bigint
}

const figuresOf = ({ requests, bytesIn, bytesOut, events }: Figures) =>
  [requests, bytesIn, bytesOut, events].map(String)

export async function show(
  { workspace, day }: { workspace: string; day: string | undefined },
  io: Io,
): Promise<void> {
  if (day === undefined) {
    const days = await withWorld(io, (world) => showDays(world, workspace))
    const rows = days.map((one) => [one.day, ...figuresOf(one), String(one.peakTunnels)])
    return io.data(days, table(['DAY', ...FIGURES, 'PEAK TUNNELS'], rows))
  }
  const counters = await withWorld(io, (world) => showCounters(world, workspace, day))
  const rows = counters.map((one) => [
    one.edge,
    one.name ?? '',
    one.epoch,
    ...figuresOf(one),
    one.lastSeen ?? 'never',
  ])
  io.data(counters, table(['EDGE', 'NAME', 'EPOCH', ...FIGURES, 'LAST SEEN'], rows))
}

export async function reset(
  given: { workspace: string; day: string; edge: string | undefined },
  io: Io,
): Promise<void> {
  const done = await withWorld(io, (world, actor) => resetUsage(world, actor, given))
  const from = given.edge === undefined ? '' : ` from the edge ${given.edge}`
  io.data(
    done,
    `Reset the usage of "${given.workspace}" on ${given.day}${from}: removed ${done.counters} counters and ` +
      `${done.minutes} minutes.`,
  )
  io.say(
    given.edge === undefined
      ? 'Edges that still run report their totals for that day again; what ended runs counted is gone.'
      : `If the edge still runs, it reports its total for that day again. To stop it: adit admin edge revoke ${given.edge}`,
  )
}
