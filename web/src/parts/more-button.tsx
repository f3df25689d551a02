// The next page of a list.
import { Button, Group } from '@mantine/core'
import { Refused } from './states.tsx'

interface Paged {
  hasNextPage: boolean
  isFetchingNextPage: boolean
  isFetchNextPageError: boolean
  error: Error | null
  fetchNextPage: () => unknown
}

export function MoreButton({ query }: { query: Paged }) {
  if (!query.hasNextPage) return null
  return (
    <>
      {query.isFetchNextPageError && <Refused error={query.error} />}
      <Group justify="center">
        <Button variant="default" loading={query.isFetchingNextPage} onClick={() => query.fetchNextPage()}>
          Load more
        </Button>
      </Group>
    </>
  )
}
