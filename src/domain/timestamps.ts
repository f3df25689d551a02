// Timestamps in ISO 8601, as on the wire.

export const isoOf = (ms: number): string => new Date(ms).toISOString()

export const isoOrNull = (ms: number | null): string | null => (ms === null ? null : isoOf(ms))
