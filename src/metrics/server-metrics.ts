// The metrics of `adit serve`. Labels have few values, which no client chooses: docs/operations/metrics.md
// lists them.
import { gauge, histogram, type MetricDefinition } from './registry.ts'
import type { RequestDurations } from './request-durations.ts'

export interface ServerSources {
  readonly version: string
  readonly requests: RequestDurations
}

export const serverMetrics = ({ version, requests }: ServerSources): MetricDefinition[] => [
  gauge('adit_build_info', 'Version of Adit; the value is always 1.', () => [[{ version }, 1]]),
  histogram(
    'http_server_request_duration_seconds',
    'Time from the head of a request to the end of its response, without streams of events.',
    () => requests.read(),
  ),
]
