package memstats

import (
	"math"
	"slices"
)

// MaxTrendPoints bounds how many points a trend is computed from; of more, the newest count.
const MaxTrendPoints = 512

// Trend is the direction of some points and how sure it is.
type Trend struct {
	// N is the number of points that were used.
	N int
	// PerHour is the Theil–Sen slope: the median of the slopes of all pairs. Up to 29 % of the points may be wild
	// without moving it far.
	PerHour float64
	// LowPerHour and HighPerHour are its 95 % confidence interval (Sen 1968), for points whose errors are
	// independent.
	LowPerHour, HighPerHour float64
	// At is the fitted value at the newest point: the median of value minus slope times time, taken there.
	At float64
	// S is Mann and Kendall's statistic: pairs that rise minus pairs that fall.
	S int64
	// Z is S in standard deviations, corrected for ties; P the two-sided probability of so large a Z without any
	// trend.
	Z, P float64
}

// FitTrend computes the trend of points in time order in O(n log n). Points at equal times are no pair for the slope.
// With fewer than two points everything but N is zero and P is 1.
func FitTrend(points []Point) Trend {
	var f fitter
	return f.fit(points)
}

// fitter holds the scratch space of trends, so that a judge of thousands of series allocates once.
type fitter struct {
	hours, values []float64
	order, spare  []int32
	z             []float64
	slopes        []float64
}

func (f *fitter) fit(points []Point) Trend {
	points = points[max(0, len(points)-MaxTrendPoints):]
	t := Trend{N: len(points), P: 1}
	if t.N < 2 {
		return t
	}
	f.load(points)
	t.S, t.Z, t.P = f.mannKendall()
	f.slope(&t)
	return t
}

// screen computes the significance only, which most series do not have.
func (f *fitter) screen(points []Point) Trend {
	points = points[max(0, len(points)-MaxTrendPoints):]
	t := Trend{N: len(points), P: 1}
	if t.N >= 2 {
		f.load(points)
		t.S, t.Z, t.P = f.mannKendall()
	}
	return t
}

// slope adds the slope to what screen or fit began.
func (f *fitter) slope(t *Trend) {
	f.senSlopes(t)
	residuals := f.slopes[:0]
	newest := f.hours[t.N-1]
	for i, v := range f.values {
		residuals = append(residuals, v-t.PerHour*(f.hours[i]-newest))
	}
	t.At = median(residuals)
	f.slopes = residuals
}

func (f *fitter) load(points []Point) {
	f.hours, f.values = f.hours[:0], f.values[:0]
	for _, p := range points {
		f.hours = append(f.hours, p.Time.Sub(points[0].Time).Hours())
		f.values = append(f.values, p.Value)
	}
	f.order = slices.Grow(f.order[:0], len(points))[:len(points)]
	f.spare = slices.Grow(f.spare[:0], len(points))[:len(points)]
	f.z = slices.Grow(f.z[:0], len(points))[:len(points)]
}

// mannKendall counts rising minus falling pairs by merge sort.
func (f *fitter) mannKendall() (s int64, z, p float64) {
	n := int64(len(f.values))
	copy(f.z, f.values)
	falling := f.inversions(f.z, false)
	pairs := n * (n - 1) / 2
	tied, correction := f.ties()
	s = pairs - tied - 2*falling
	variance := (float64(n)*float64(n-1)*float64(2*n+5) - correction) / 18
	if s == 0 || variance <= 0 {
		return s, 0, 1
	}
	z = (float64(s) - math.Copysign(1, float64(s))) / math.Sqrt(variance)
	return s, z, math.Erfc(math.Abs(z) / math.Sqrt2)
}

// ties counts the pairs of equal values and what they take from the variance; f.z is sorted by then.
func (f *fitter) ties() (pairs int64, correction float64) {
	copy(f.z, f.values)
	slices.Sort(f.z)
	for i := 0; i < len(f.z); {
		j := i + 1
		for j < len(f.z) && f.z[j] == f.z[i] {
			j++
		}
		g := int64(j - i)
		pairs += g * (g - 1) / 2
		correction += float64(g) * float64(g-1) * float64(2*g+5)
		i = j
	}
	return pairs, correction
}

// inversions counts the pairs i < j with z[j] < z[i], or z[j] <= z[i] with equal, by a bottom-up merge sort of
// indexes.
func (f *fitter) inversions(z []float64, equal bool) (count int64) {
	order, spare := f.order, f.spare
	for i := range order {
		order[i] = int32(i)
	}
	for width := 1; width < len(order); width *= 2 {
		for low := 0; low < len(order); low += 2 * width {
			count += merge(z, order, spare, low, min(low+width, len(order)), min(low+2*width, len(order)), equal)
		}
		order, spare = spare, order
	}
	f.order, f.spare = order, spare
	return count
}

// merge joins two sorted runs and counts how often an element of the right one goes before one of the left one.
func merge(z []float64, from, to []int32, low, middle, high int, equal bool) (count int64) {
	i, j := low, middle
	for k := low; k < high; k++ {
		right := j < high && (i >= middle || z[from[j]] < z[from[i]] || equal && z[from[j]] == z[from[i]])
		if !right {
			to[k] = from[i]
			i++
			continue
		}
		to[k] = from[j]
		j++
		count += int64(middle - i)
	}
	return count
}

// senSlopes fills the slope and its interval.
func (f *fitter) senSlopes(t *Trend) {
	n := int64(len(f.hours))
	pairs := n*(n-1)/2 - f.equalTimes()
	if pairs == 0 {
		return
	}
	_, correction := f.ties()
	variance := (float64(n)*float64(n-1)*float64(2*n+5) - correction) / 18
	half := 1.96 * math.Sqrt(max(0, variance))
	low := int64(math.Round((float64(pairs) - half) / 2))
	high := int64(math.Round((float64(pairs)+half)/2)) - 1
	pick := f.selector(pairs)
	t.PerHour = (pick((pairs-1)/2) + pick(pairs/2)) / 2
	t.LowPerHour = pick(min(max(low-1, 0), pairs-1))
	t.HighPerHour = pick(min(max(high+1, 0), pairs-1))
}

func (f *fitter) equalTimes() (pairs int64) {
	for i := 0; i < len(f.hours); {
		j := i + 1
		for j < len(f.hours) && f.hours[j] == f.hours[i] {
			j++
		}
		pairs += int64(j-i) * int64(j-i-1) / 2
		i = j
	}
	return pairs
}

// smallTrend is the number of points up to which sorting all slopes is faster than selecting among them.
const smallTrend = 40

// selector gives a function that returns the k-th smallest slope.
func (f *fitter) selector(pairs int64) func(k int64) float64 {
	if len(f.hours) > smallTrend {
		return func(k int64) float64 { return f.selectSlope(k) }
	}
	f.slopes = slices.Grow(f.slopes[:0], int(pairs))
	for j := range f.hours {
		for i := range j {
			if f.hours[j] > f.hours[i] {
				f.slopes = append(f.slopes, (f.values[j]-f.values[i])/(f.hours[j]-f.hours[i]))
			}
		}
	}
	slices.Sort(f.slopes)
	slopes := f.slopes
	return func(k int64) float64 { return slopes[k] }
}

// selectSlope finds the k-th smallest slope without listing all. A pair's slope is at most x exactly when the pair is
// inverted in value - x*time, and inversions are counted in O(n log n): so bisect x until few pairs are left between
// the ends, and list those. (The dual of Cole, Salowe, Steiger and Szemerédi 1989, with bisection in the place of
// random picks, so that results repeat.)
func (f *fitter) selectSlope(k int64) float64 {
	low, high := math.Inf(1), math.Inf(-1) // every slope lies between those of neighbours
	for i := 1; i < len(f.hours); i++ {
		if dt := f.hours[i] - f.hours[i-1]; dt > 0 {
			slope := (f.values[i] - f.values[i-1]) / dt
			low, high = min(low, slope), max(high, slope)
		}
	}
	if low == high {
		return low
	}
	low = math.Nextafter(low-math.Abs(low)*1e-12, math.Inf(-1))
	high = math.Nextafter(high+math.Abs(high)*1e-12, math.Inf(1))
	below, upTo := f.countUpTo(low), f.countUpTo(high)
	for upTo-below > int64(2*len(f.hours)) {
		middle := low + (high-low)/2
		if middle <= low || middle >= high {
			return high // all that is left is equal
		}
		if c := f.countUpTo(middle); c > k {
			high, upTo = middle, c
		} else {
			low, below = middle, c
		}
	}
	return f.between(low, high, k-below)
}

// countUpTo is the number of slopes <= x.
func (f *fitter) countUpTo(x float64) int64 {
	for i := range f.z {
		f.z[i] = f.values[i] - x*f.hours[i]
	}
	return f.inversions(f.z, true) - f.equalTimesInverted()
}

// equalTimesInverted is the number of pairs at equal times that inversions counted, which are no slopes.
func (f *fitter) equalTimesInverted() (count int64) {
	for i := 0; i < len(f.hours); {
		j := i + 1
		for ; j < len(f.hours) && f.hours[j] == f.hours[i]; j++ {
			for k := i; k < j; k++ {
				if f.z[j] <= f.z[k] {
					count++
				}
			}
		}
		i = j
	}
	return count
}

// between lists the slopes in (low, high] and gives the k-th: sorted by value - low*time, the pairs that an insertion
// sort by value - high*time swaps are exactly those.
func (f *fitter) between(low, high float64, k int64) float64 {
	f.countUpTo(low) // sorts f.order
	for i := range f.z {
		f.z[i] = f.values[i] - high*f.hours[i]
	}
	slopes := f.slopes[:0]
	order := f.order
	for i := 1; i < len(order); i++ {
		for j := i; j > 0 && f.swaps(order[j-1], order[j]); j-- {
			a, b := order[j-1], order[j]
			order[j-1], order[j] = b, a
			if dt := f.hours[b] - f.hours[a]; dt != 0 {
				slopes = append(slopes, (f.values[b]-f.values[a])/dt)
			}
		}
	}
	f.slopes = slopes
	if len(slopes) == 0 {
		return high
	}
	slices.Sort(slopes)
	return slopes[min(max(k, 0), int64(len(slopes)-1))]
}

// swaps says whether b, which comes after a at the low slope, comes before it at the high one. On a tie the later
// point comes first, as in inversions that count equal ones.
func (f *fitter) swaps(a, b int32) bool {
	return f.z[b] < f.z[a] || f.z[b] == f.z[a] && b > a
}

// median sorts v and gives its middle; NaN when it is empty.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
