package rulefile

import "strings"

// suggest gives `; did you mean "x"?` for the known word nearest to one that is not known; "" when none is near.
func suggest(word string, known []string) string {
	const longest = 80 // of words that are worth a comparison
	best, distance := "", 0
	for _, k := range known {
		if len(word) > longest || len(k) > longest {
			continue
		}
		d := editDistance(strings.ToLower(word), strings.ToLower(k))
		if best == "" || d < distance {
			best, distance = k, d
		}
	}
	if best == "" || distance > max(1, len(best)/3) {
		return ""
	}
	return `; did you mean "` + best + `"?`
}

// editDistance counts the bytes to insert, to delete, to replace, or to swap with their neighbour, that make b of a.
func editDistance(a, b string) int {
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := last[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			now[j] = min(replaced, last[j]+1, now[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}
