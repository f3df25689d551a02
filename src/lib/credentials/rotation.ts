// How long a rotated key stays valid next to its successor, in hours.

export const overlapHours = { none: 0, '1h': 1, '24h': 24, '7d': 7 * 24 } as const

export type Overlap = keyof typeof overlapHours

export const overlaps = Object.keys(overlapHours) as Overlap[]

export const isOverlap = (text: string): text is Overlap => Object.hasOwn(overlapHours, text)
