// Lists in pages.
import Type from 'typebox'

export const Cursor = Type.Optional(
  Type.String({
    pattern: '^[a-z]{3}_[0-9a-z]{1,64}$',
    description: '`next` of the previous page.',
    'x-rule': 'must be `next` of the previous page',
  }),
)
export const Limit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 200, default: 50, description: 'Maximum number of items per page.' }),
)
export const NextPage = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  description: 'Cursor of the next page; null on the last page.',
})
