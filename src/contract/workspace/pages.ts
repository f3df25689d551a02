// Lists in pages: `next` of a response is the `cursor` of the following request.
import Type, { type TSchema } from 'typebox'
import { PAGE_ITEMS } from '../limits.ts'

/** `cursor` is its schema: how much it may contain depends on what the list is sorted by. */
export const pageQuery = <C extends TSchema>(cursor: C) => ({
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: PAGE_ITEMS.max,
      default: PAGE_ITEMS.default,
      description: 'Maximum number of items per page.',
    }),
  ),
  cursor: Type.Optional(cursor),
})

export const cursorRule = {
  description: '`next` of the previous page.',
  'x-rule': 'must be `next` of the previous page',
} as const

export const NextCursor = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  description: 'The `cursor` of the next page; null if this is the last one.',
})

export const PAGING =
  'Returns at most `limit` items. Repeat the request with `next` of the response as `cursor`, until it is null.'
