// Package sensors reads sensor files (design §5): it parses and checks each
// file against config/schema, lays the layers over each other, and says where
// every value came from and what is wrong with which rule of which file.
//
// Layers: shipped < user < project, by sensor name; a sensor's keys one by one,
// its rules by name, a rule's keys one by one. `dispatch`, `where` and `sections`
// are one value each: a layer that sets one replaces all of it.
//
// What is wrong stays where it is: a mistake inside a rule takes that rule out,
// a mistake outside the rules takes that sensor out, in all layers, since nobody
// can say what the file would have changed. Nothing takes out another sensor.
package sensors
