// Counts verified credentials by verdict and by source.

/** Verdicts by source: the cache, the database, or only the format of the credential. */
const VERDICTS = {
  hit: ['valid', 'unknown', 'revoked', 'expired', 'archived'],
  miss: ['valid', 'unknown', 'revoked', 'expired', 'archived', 'unavailable'],
  none: ['malformed', 'other_kind'],
} as const

type Verdicts = typeof VERDICTS

const zeros = <C extends keyof Verdicts>(cache: C) =>
  Object.fromEntries(VERDICTS[cache].map((verdict) => [verdict, 0])) as Record<Verdicts[C][number], number>

export class VerdictCounts {
  readonly hit = zeros('hit')
  readonly miss = zeros('miss')
  readonly none = zeros('none')

  read(): [{ cache: string; verdict: string }, number][] {
    const { hit, miss, none } = this
    return Object.entries({ hit, miss, none }).flatMap(([cache, counts]) =>
      Object.entries(counts).map(([verdict, count]): [{ cache: string; verdict: string }, number] => [
        { cache, verdict },
        count,
      ]),
    )
  }
}
