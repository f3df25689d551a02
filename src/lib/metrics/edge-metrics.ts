// The metrics of `adit edge`: docs/operations/metrics.md lists them.
import type { EdgeInstruments } from './edge-instruments.ts'
import { byLabel, counter, gauge, histogram, type Labels, type MetricDefinition } from './registry.ts'

/** Read at each scrape. */
interface EdgeTrafficSources {
  readonly version: string
  readonly instruments: EdgeInstruments
  /** Connected tunnel clients, with their requests and connections in progress. */
  clients(): Iterable<{ readonly active: number }>
  /** Bytes that were received, and not yet sent on. */
  bufferedBytes(): number
  /** Connections with other edges; undefined if the edge has no port for them. */
  peers: (() => { in: number; out: number }) | undefined
}

/** With several workers, only the primary has these. */
interface EdgeStateSources {
  openTunnels(): Iterable<{ readonly type: string }>
  /** Whether revocations are received. */
  isUpToDate(): boolean
  /** Undefined without a control plane. */
  spoolBytes: (() => number) | undefined
}

export type EdgeSources = EdgeTrafficSources & EdgeStateSources

export const edgeMetrics = (sources: EdgeSources): MetricDefinition[] => [
  ...edgeTrafficMetrics(sources),
  ...edgeStateMetrics(sources),
]

export const edgeStateMetrics = (edge: EdgeStateSources): MetricDefinition[] => [
  gauge('adit_edge_tunnels_open', 'Open tunnels.', () => {
    const open: Record<string, number> = { http: 0, tcp: 0 }
    for (const { type } of edge.openTunnels()) open[type] = (open[type] ?? 0) + 1
    return byLabel('type', open)
  }),
  gauge('adit_edge_control_plane_up', 'Whether revocations are received: 1 or 0.', () =>
    edge.isUpToDate() ? 1 : 0,
  ),
  gauge('adit_edge_spool_bytes', 'Usage on disk that is not reported yet.', () => edge.spoolBytes?.() ?? []),
]

export const edgeTrafficMetrics = ({
  version,
  instruments,
  ...edge
}: EdgeTrafficSources): MetricDefinition[] => [
  gauge('adit_build_info', 'Version of Adit; the value is always 1.', () => [[{ version }, 1]], 'first'),
  histogram(
    'http_server_request_duration_seconds',
    'Time from the head of a request through a tunnel to the head of its response.',
    () => instruments.requests.read(),
  ),
  gauge('adit_edge_tunnel_clients', 'Connected tunnel clients.', () => [...edge.clients()].length),
  gauge('adit_edge_streams_active', 'Requests and TCP connections through tunnels in progress.', () => {
    let active = 0
    for (const client of edge.clients()) active += client.active
    return active
  }),
  counter('adit_edge_requests_total', 'Requests and TCP connections that tunnels carried.', () => [
    [{}, instruments.transferred.requests],
  ]),
  counter(
    'adit_edge_bytes_total',
    'Bytes that tunnels carried, as usage counts them.',
    (): [Labels, number][] => [
      [{ direction: 'in' }, instruments.transferred.bytesIn],
      [{ direction: 'out' }, instruments.transferred.bytesOut],
    ],
  ),
  counter('adit_edge_rejected_total', 'Requests that reached no tunnel client, by status.', () =>
    byLabel('status', instruments.rejected),
  ),
  counter(
    'adit_edge_forwarded_requests_total',
    'Requests that were forwarded to another edge or worker.',
    () => instruments.forwarded,
  ),
  counter(
    'adit_edge_forward_failures_total',
    'Requests that could not be forwarded to an edge, by cause; some were repeated at another one.',
    () => byLabel('cause', instruments.forwardFailures),
  ),
  gauge('adit_edge_peer_connections', 'Connections with other edges, by the direction of requests.', () => {
    const peers = edge.peers?.()
    return peers ? byLabel('direction', peers) : []
  }),
  counter(
    'adit_edge_evicted_total',
    'Requests and TCP connections ended because they were the slowest, by reason.',
    () => byLabel('reason', instruments.evicted),
  ),
  gauge(
    'adit_edge_buffered_bytes',
    'Bytes of requests and TCP connections that were received and not yet sent on.',
    () => edge.bufferedBytes(),
  ),
  counter('adit_edge_verifications_total', 'API keys verified, by verdict.', () =>
    byLabel('verdict', instruments.verdicts),
  ),
]
