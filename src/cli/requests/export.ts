// `adit requests export`: recorded requests as a HAR document.
import { printableJson } from '../../contract/text.ts'
import { API } from '../../inspector/api.ts'
import type { Io } from '../io.ts'
import { type FilterInput, toQuery } from './filters.ts'
import { findRecorders, withQuery } from './recorders.ts'

interface Har {
  readonly log: { readonly entries: readonly { readonly startedDateTime: string }[] }
}

export async function exportHar(input: FilterInput & { reveal: boolean }, io: Io): Promise<void> {
  const path = withQuery(API.har, { ...toQuery(input), reveal: input.reveal ? 'true' : undefined })
  const documents = await Promise.all(
    (await findRecorders()).map((recorder) => recorder.call<Har>('GET', path)),
  )
  const entries = documents
    .flatMap(({ log }) => log.entries)
    .sort((a, b) => Date.parse(a.startedDateTime) - Date.parse(b.startedDateTime))
  const [first] = documents
  await io.write(`${printableJson({ log: { ...first?.log, entries } })}\n`)
}
