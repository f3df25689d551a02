// W3C Trace Context: the `traceparent` header names the trace that a request belongs to.

/** Version, trace id, parent id and flags. Only versions after 00 may have more fields. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/

/** Undefined if the header is missing or invalid. */
export function readTraceId(traceparent: string | string[] | undefined): string | undefined {
  if (typeof traceparent !== 'string') return undefined
  const [, version, traceId, rest] = TRACEPARENT.exec(traceparent) ?? []
  return version === '00' && rest !== undefined ? undefined : traceId
}
