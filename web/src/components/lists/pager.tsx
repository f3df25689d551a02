// Pages of a list that is loaded as a whole, so that long lists are not rendered as a whole.
import { Group, Pagination, Text } from '@mantine/core'
import { useRef, useState } from 'react'
import { formatCount } from '../../format.ts'
import { useIsPhone } from '../use-is-phone.ts'

const PAGE_SIZE = 25
/** A card is higher than a row. */
const PHONE_PAGE_SIZE = 10

/** Height of the header, which is always visible, and a margin. */
const HEADER_PX = 76

export function usePager<T>(items: readonly T[]) {
  const [requested, setPage] = useState(1)
  const size = useIsPhone() ? PHONE_PAGE_SIZE : PAGE_SIZE
  const pages = Math.max(1, Math.ceil(items.length / size))
  // The list may have become shorter.
  const page = Math.min(requested, pages)
  const first = (page - 1) * size
  return { items: items.slice(first, first + size), first, total: items.length, page, pages, setPage }
}

interface PagerProps {
  pager: Omit<ReturnType<typeof usePager>, 'items'> & { items: readonly unknown[] }
  /** Accessible name, e.g. "Pages of tunnels". */
  name: string
}

/** Belongs below the list, in the same parent: another page scrolls to the top of that parent. */
export function Pager({ pager: { items, first, total, page, pages, setPage }, name }: PagerProps) {
  const isPhone = useIsPhone()
  const nav = useRef<HTMLDivElement>(null)
  const goTo = (next: number) => {
    setPage(next)
    const top = nav.current?.parentElement?.getBoundingClientRect().top ?? 0
    if (top < HEADER_PX) window.scrollBy(0, top - HEADER_PX)
  }
  if (pages === 1) return null
  return (
    <Group component="nav" ref={nav} aria-label={name} justify="space-between" gap="sm">
      <Text size="sm" c="dimmed" className="tabular" role="status">
        {formatCount(first + 1)}–{formatCount(first + items.length)} of {formatCount(total)}
      </Text>
      <Pagination
        total={pages}
        value={page}
        onChange={goTo}
        size={isPhone ? 'sm' : 'md'}
        siblings={isPhone ? 0 : 1}
        gap={4}
        getItemProps={(number) => ({ 'aria-label': `Page ${number}` })}
        getControlProps={(control) => ({
          'aria-label': control === 'previous' ? 'Previous page' : 'Next page',
        })}
      />
    </Group>
  )
}
