// Trace context of W3C: a request names the trace that it belongs to in `traceparent`.

/** Version, trace id, parent id and flags. Later versions may have more, which version 00 has not. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/

/** Undefined if the header is missing or invalid. */
export function readTraceId(traceparent: string | string[] | undefined): string | undefined {
  if (typeof traceparent !== 'string') return undefined
  const [, version, traceId, rest] = TRACEPARENT.exec(traceparent) ?? []
  return version === '00' && rest !== undefined ? undefined : traceId
}
